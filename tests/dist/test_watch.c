/* test_watch.c: ranks as threads of one process. Numbers are given out once, progress arrives, a rank that closes its
 * connection or is silent is reported once and by name, strangers are turned away. */
#define _POSIX_C_SOURCE 200809L
#include "dist/watch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "check.h"

enum { RANKS = 4, ITEMS = 400 };

static const tess_dist_place places[RANKS] = {
    {"first", 100, 0, RANKS}, {"second", 101, 1, RANKS}, {"third", 102, 2, RANKS}, {"fourth", 103, 3, RANKS}};

typedef struct rank {
    int number;
    const tess_watch_address *address;
    tess_watch *watch;
    tess_status status;
    tess_error error;
    _Atomic int lost; /* calls of the callback */
    char text[TESS_ERROR_TEXT];
    bool silent; /* connects, and then sends nothing */
    int socket;
    _Atomic int *taken;
} rank;

static void pause_for(double seconds)
{
    nanosleep(&(struct timespec){(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)}, NULL);
}

static void on_lost(void *user, const char *text)
{
    rank *r = user;
    snprintf(r->text, sizeof r->text, "%s", text ? text : "");
    atomic_fetch_add(&r->lost, 1);
}

static tess_watch_settings settings_of(rank *r, double silence)
{
    return (tess_watch_settings){.rank = r->number,
                                 .size = RANKS,
                                 .silence = silence,
                                 .connect_seconds = 10,
                                 .places = places,
                                 .lost = on_lost,
                                 .user = r};
}

static double silence_now;

static void *join(void *arg)
{
    rank *r = arg;
    const tess_watch_settings settings = settings_of(r, silence_now);
    if (r->silent) {
        r->socket = tess_socket_connect(r->address, r->number, tess_clock() + 10, &r->error);
        return NULL;
    }
    r->status = tess_watch_connect(&settings, r->address, &r->watch, &r->error);
    if (r->status == TESS_OK)
        r->status = tess_watch_start(r->watch, &r->error);
    return NULL;
}

/* Connects all ranks; the one in `silent` only greets. */
static void open_all(rank ranks[RANKS], double silence, int silent)
{
    static tess_watch_address address;
    pthread_t threads[RANKS];
    memset(ranks, 0, RANKS * sizeof *ranks);
    silence_now = silence;
    for (int i = 0; i < RANKS; i++)
        ranks[i].number = i, ranks[i].address = &address, ranks[i].silent = i == silent, ranks[i].socket = -1;
    const tess_watch_settings settings = settings_of(&ranks[0], silence);
    CHECK(tess_watch_listen(&settings, true, &address, &ranks[0].watch, &ranks[0].error) == TESS_OK);
    /* a stranger does not know the secret */
    tess_watch_address wrong = address;
    wrong.secret++;
    const int stranger = tess_socket_connect(&wrong, 1, tess_clock() + 10, &ranks[0].error);
    for (int i = 1; i < RANKS; i++)
        pthread_create(&threads[i], NULL, join, &ranks[i]);
    ranks[0].status = tess_watch_start(ranks[0].watch, &ranks[0].error);
    for (int i = 1; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < RANKS; i++)
        CHECK_MSG(ranks[i].status == TESS_OK, "rank %d: %s", i, ranks[i].error.text);
    CHECK(stranger >= 0);
    close(stranger);
}

static void *work(void *arg)
{
    rank *r = arg;
    for (uint32_t counter = 0; counter < 3; counter++)
        for (int64_t i; (i = tess_watch_next(r->watch, counter)) < ITEMS;) {
            atomic_fetch_add(&r->taken[counter * ITEMS + i], 1);
            tess_watch_report(r->watch, i);
        }
    tess_watch_report(r->watch, 10 + r->number);
    return NULL;
}

static void test_numbers(void)
{
    static rank ranks[RANKS];
    static _Atomic int taken[3 * ITEMS];
    pthread_t threads[RANKS];
    open_all(ranks, 5, -1);
    for (int i = 0; i < RANKS; i++) {
        ranks[i].taken = taken;
        pthread_create(&threads[i], NULL, work, &ranks[i]);
    }
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    int wrong = 0;
    for (int i = 0; i < 3 * ITEMS; i++)
        wrong += taken[i] != 1;
    CHECK_MSG(wrong == 0, "%d numbers were not given out once", wrong);
    for (int i = 0; i < 60 && tess_watch_reported(ranks[0].watch) != 11 + 12 + 13; i++)
        pause_for(0.1);
    CHECK(tess_watch_reported(ranks[0].watch) == 11 + 12 + 13);
    tess_watch_drain(ranks[2].watch, 7);
    CHECK(tess_watch_next(ranks[2].watch, 7) == INT64_MAX);
    CHECK(tess_watch_next(ranks[0].watch, 7) == INT64_MAX);
    CHECK(tess_watch_next(ranks[1].watch, 7 + 64) == 0);    /* takes the place of counter 7 */
    CHECK(tess_watch_next(ranks[1].watch, 7) == INT64_MAX); /* too old */
    for (int i = 0; i < RANKS; i++)
        tess_watch_close(ranks[(i + 2) % RANKS].watch);
    for (int i = 0; i < RANKS; i++)
        CHECK_MSG(ranks[i].lost == 0, "rank %d reports a loss at the end: %s", i, ranks[i].text);
}

/* Rank 0 reports rank 2; the others learn of it from rank 0, and say nothing. */
static void test_loss(bool closes)
{
    static rank ranks[RANKS];
    open_all(ranks, closes ? 30 : 2, 2);
    if (closes)
        close(ranks[2].socket);
    for (int i = 0; i < 100 && !(ranks[0].lost && ranks[1].lost && ranks[3].lost); i++)
        pause_for(0.1);
    const char *expected = closes ? "rank 2 (third, pid 102) has died; the job ends"
                                  : "rank 2 (third, pid 102) does not answer for 2 seconds; the job ends";
    CHECK_MSG(ranks[0].lost == 1 && strcmp(ranks[0].text, expected) == 0, "%s", ranks[0].text);
    CHECK_MSG(ranks[1].lost == 1 && ranks[1].text[0] == '\0', "rank 1: %s", ranks[1].text);
    CHECK_MSG(ranks[3].lost == 1 && ranks[3].text[0] == '\0', "rank 3: %s", ranks[3].text);
    if (!closes)
        close(ranks[2].socket);
    for (int i = 0; i < RANKS; i++)
        tess_watch_close(ranks[i].watch);
}

static void *leave(void *arg)
{
    rank *r = arg;
    pause_for(0.4 * r->number);
    tess_watch_leave(r->watch);
    return NULL;
}

/* Ranks leave together, long after the first one wanted to; one that hangs at the end is still reported. */
static void test_leave(int silent)
{
    static rank ranks[RANKS];
    pthread_t threads[RANKS];
    open_all(ranks, 2, silent);
    for (int i = 0; i < RANKS; i++)
        pthread_create(&threads[i], NULL, leave, &ranks[i]);
    for (int i = 0; i < RANKS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < RANKS; i++) {
        CHECK_MSG(ranks[i].lost == (silent >= 0 && i != silent), "rank %d of those that leave: %s", i,
                  ranks[i].text);
        tess_watch_close(ranks[i].watch);
    }
    CHECK_MSG(!strstr(ranks[0].text, "rank 2 (third, pid 102) does not answer") == (silent != 2), "%s",
              ranks[0].text);
    if (silent >= 0)
        close(ranks[silent].socket);
}

/* A rank that never connects. */
static void test_missing(void)
{
    static rank first;
    tess_watch_address address;
    tess_watch_settings settings = settings_of(&first, 5);
    settings.connect_seconds = 0.3;
    CHECK(tess_watch_listen(&settings, true, &address, &first.watch, &first.error) == TESS_OK);
    CHECK(tess_watch_start(first.watch, &first.error) != TESS_OK);
    CHECK_MSG(strcmp(first.error.text, "rank 1 (second, pid 101) does not connect to rank 0") == 0, "%s",
              first.error.text);
    tess_watch_close(first.watch);
    settings.rank = 1; /* nobody listens any more */
    CHECK(tess_watch_connect(&settings, &address, &first.watch, &first.error) != TESS_OK);
    CHECK_MSG(strstr(first.error.text, "cannot reach rank 0 at 127.0.0.1"), "%s", first.error.text);
}

/* Ranks on other hosts reach rank 0 by any of its addresses. */
static void test_other_hosts(void)
{
    static rank first, second;
    second.number = 1;
    tess_watch_address address;
    tess_watch_settings settings = settings_of(&first, 5);
    settings.size = 2;
    if (tess_watch_listen(&settings, false, &address, &first.watch, &first.error) != TESS_OK) {
        printf("this host has no address for other hosts: %s\n", first.error.text);
        return;
    }
    CHECK(address.count >= 1 && address.port != 0);
    tess_watch_settings others = settings_of(&second, 5);
    others.size = 2;
    CHECK_MSG(tess_watch_connect(&others, &address, &second.watch, &second.error) == TESS_OK, "%s",
              second.error.text);
    CHECK_MSG(tess_watch_start(first.watch, &first.error) == TESS_OK, "%s", first.error.text);
    CHECK(tess_watch_start(second.watch, &second.error) == TESS_OK);
    CHECK(tess_watch_next(second.watch, 0) == 0 && tess_watch_next(first.watch, 0) == 1);
    tess_watch_close(second.watch);
    tess_watch_close(first.watch);
}

int main(void)
{
    test_other_hosts();
    test_numbers();
    test_loss(true);
    test_loss(false);
    test_leave(-1);
    test_leave(2);
    test_missing();
    return check_end();
}
