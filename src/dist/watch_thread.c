/* The thread of a watch: reads messages, sends beats, and notices silence. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "dist/watch_impl.h"

static const double BEAT = 1; /* seconds */
/* Seconds between two ranks that would report the same loss: the abort of the first may hang for 3, and its launcher
 * needs one or two more to end the others, even those that catch SIGTERM. */
enum { TURN = 6, TURNS = 3 };

void tess_watch_name(const tess_watch *watch, int rank, const char *what, tess_error *line)
{
    const tess_dist_place *place = &watch->settings.places[rank];
    (void)tess_fail(line, TESS_OK, "rank %d (%s, pid %d) %s", rank, place->host, place->pid, what);
}

/* Messages are small and rare: one that does not fit into the socket's buffer means that nobody reads there, which the
 * silence will show. */
void tess_watch_send(const tess_watch_peer *to, tess_watch_kind kind, uint32_t counter, int64_t value)
{
    const tess_watch_message one = {kind, counter, value};
    if (to->socket >= 0)
        (void)!send(to->socket, &one, sizeof one, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static tess_watch_number *slot_of(tess_watch *watch, uint32_t counter)
{
    tess_watch_number *slot = &watch->numbers[counter % TESS_WATCH_COUNTERS];
    if (slot->counter < counter)
        *slot = (tess_watch_number){counter, 0};
    return slot;
}

/* Rank 0, with the lock. A counter that is too old has no numbers left. */
int64_t tess_watch_take(tess_watch *watch, uint32_t counter)
{
    tess_watch_number *slot = slot_of(watch, counter);
    return slot->counter != counter || slot->next == INT64_MAX ? INT64_MAX : slot->next++;
}

void tess_watch_empty(tess_watch *watch, uint32_t counter)
{
    tess_watch_number *slot = slot_of(watch, counter);
    if (slot->counter == counter)
        slot->next = INT64_MAX;
}

/* Returns true if another rank has ended the job. */
static bool handle(tess_watch *watch, tess_watch_peer *from, const tess_watch_message *one)
{
    bool ends = false;
    pthread_mutex_lock(&watch->mutex);
    switch ((tess_watch_kind)one->kind) {
    case TESS_WATCH_BEATS:
        from->done = one->value;
        break;
    case TESS_WATCH_ASKS:
        tess_watch_send(from, TESS_WATCH_ANSWERS, one->counter, tess_watch_take(watch, one->counter));
        break;
    case TESS_WATCH_ANSWERS:
        watch->answer = one->value;
        watch->waiting = false;
        pthread_cond_broadcast(&watch->answered);
        break;
    case TESS_WATCH_DRAINS:
        tess_watch_empty(watch, one->counter);
        break;
    case TESS_WATCH_LEAVES:
        from->left = true;
        break;
    case TESS_WATCH_ENDS:
        ends = true;
        break;
    }
    pthread_mutex_unlock(&watch->mutex);
    return ends;
}

typedef enum peer_state { ALIVE, GONE, ENDED } peer_state;

static peer_state read_peer(tess_watch *watch, tess_watch_peer *from)
{
    for (;;) {
        const ssize_t part =
            recv(from->socket, from->part + from->got, sizeof(tess_watch_message) - from->got, MSG_DONTWAIT);
        if (part < 0)
            return errno == EAGAIN || errno == EINTR ? ALIVE : GONE;
        if (part == 0)
            return GONE;
        from->got += (size_t)part;
        from->heard = tess_clock();
        if (from->got < sizeof(tess_watch_message))
            continue;
        tess_watch_message one;
        memcpy(&one, from->part, sizeof one);
        from->got = 0;
        if (handle(watch, from, &one))
            return ENDED;
    }
}

/* Reports a lost rank. The others are told, so that they do not take this rank's end for another loss. If rank 0 is
 * lost, all the others notice: they report in turn, and the first one ends the job. */
static void report_loss(tess_watch *watch, const tess_watch_peer *lost, const char *what)
{
    tess_error line;
    tess_watch_name(watch, lost->rank, what, &line);
    pthread_mutex_lock(&watch->mutex);
    for (int i = 0; i < watch->count; i++)
        tess_watch_send(&watch->peers[i], TESS_WATCH_ENDS, 0, 0);
    pthread_mutex_unlock(&watch->mutex);
    const int before = watch->settings.rank - 1;
    if (before > 0)
        sleep((unsigned)(TURN * (before < TURNS ? before : TURNS)));
    watch->settings.lost(watch->settings.user, line.text);
}

static bool is_closing(tess_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    const bool closing = watch->closing;
    pthread_mutex_unlock(&watch->mutex);
    return closing;
}

/* Whether all have left; the others wait for rank 0 to say so. */
static bool have_left(tess_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    bool all = watch->leaving;
    for (int i = 0; i < watch->count; i++)
        all = all && watch->peers[i].left;
    for (int i = 0; i < watch->count && all && watch->settings.rank == 0; i++)
        tess_watch_send(&watch->peers[i], TESS_WATCH_LEAVES, 0, 0);
    pthread_mutex_unlock(&watch->mutex);
    return all;
}

static void beat(tess_watch *watch)
{
    pthread_mutex_lock(&watch->mutex);
    for (int i = 0; i < watch->count; i++)
        tess_watch_send(&watch->peers[i], TESS_WATCH_BEATS, 0, watch->done);
    pthread_mutex_unlock(&watch->mutex);
}

/* Returns false when the watch is over. */
static bool look(tess_watch *watch)
{
    char words[96];
    const double now = tess_clock();
    for (int i = 0; i < watch->count; i++) {
        tess_watch_peer *one = &watch->peers[i];
        if (one->left)
            continue;
        const peer_state state = watch->polled[i].revents ? read_peer(watch, one) : ALIVE;
        if (is_closing(watch) || one->left)
            continue;
        if (state == ENDED) {
            watch->settings.lost(watch->settings.user, NULL);
            return false;
        }
        if (state == GONE) {
            report_loss(watch, one, "has died; the job ends");
            return false;
        }
        if (now - one->heard > watch->settings.silence) {
            snprintf(words, sizeof words, "does not answer for %.0f seconds; the job ends",
                     watch->settings.silence);
            report_loss(watch, one, words);
            return false;
        }
    }
    return true;
}

void *tess_watch_run(void *arg)
{
    tess_watch *watch = arg;
    const double pause = watch->settings.silence / 5 < BEAT ? watch->settings.silence / 5 : BEAT;
    double last = tess_clock(), next = last;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL); /* signals are for the thread that does the work */
    for (int i = 0; i < watch->count; i++)
        watch->peers[i].heard = last;
    for (;;) {
        if (tess_clock() >= next) {
            beat(watch);
            next = tess_clock() + pause;
        }
        for (int i = 0; i < watch->count; i++)
            watch->polled[i] =
                (struct pollfd){.fd = watch->peers[i].left ? -1 : watch->peers[i].socket, .events = POLLIN};
        watch->polled[watch->count] = (struct pollfd){.fd = watch->wake[0], .events = POLLIN};
        const double left = next - tess_clock();
        (void)!poll(watch->polled, (nfds_t)watch->count + 1, left > 0 ? (int)(left * 1000) + 1 : 0);
        const double now = tess_clock();
        /* If this process itself was stopped, or had no core, it cannot know who else was silent. */
        for (int i = 0; i < watch->count && now - last > watch->settings.silence / 2; i++)
            watch->peers[i].heard = now;
        last = now;
        char woken;
        (void)!read(watch->wake[0], &woken, 1);
        if (is_closing(watch) || !look(watch) || have_left(watch))
            return NULL;
    }
}
