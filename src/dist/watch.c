#define _GNU_SOURCE
#include "dist/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/thread.h"
#include "dist/watch_impl.h"
#include "dist/watch_socket.h"

static const size_t STACK = (size_t)256 << 10;

static tess_status create(const tess_watch_settings *settings, tess_watch **out, tess_error *error)
{
    tess_watch *watch = tess_small_alloc(1, sizeof *watch);
    const int count = settings->rank == 0 ? settings->size - 1 : 1;
    if (watch) {
        *watch = (tess_watch){.settings = *settings, .listener = -1, .wake = {-1, -1}, .count = count};
        watch->peers = tess_small_alloc((size_t)count, sizeof *watch->peers);
        watch->polled = tess_small_alloc((size_t)count + 1, sizeof *watch->polled);
        pthread_mutex_init(&watch->mutex, NULL);
        pthread_cond_init(&watch->answered, NULL);
        for (int i = 0; i < count && watch->peers; i++)
            watch->peers[i] = (tess_watch_peer){.rank = settings->rank == 0 ? i + 1 : 0, .socket = -1};
    }
    *out = watch;
    if (!watch || !watch->peers || !watch->polled)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to watch %d ranks", settings->size);
    return pipe2(watch->wake, O_CLOEXEC | O_NONBLOCK) == 0
               ? TESS_OK
               : tess_fail(error, TESS_IO_FAILED, "cannot open a pipe: %s", strerror(errno));
}

static tess_status give_up(tess_watch *watch, tess_status status)
{
    tess_watch_close(watch);
    return status;
}

tess_status tess_watch_listen(const tess_watch_settings *settings, bool local, tess_watch_address *address,
                              tess_watch **out, tess_error *error)
{
    tess_watch *watch;
    tess_status status = create(settings, &watch, error);
    if (status != TESS_OK)
        return give_up(watch, status);
    watch->listener = tess_socket_listen(local, address, error);
    if (watch->listener < 0)
        return give_up(watch, TESS_IO_FAILED);
    watch->secret = address->secret;
    *out = watch;
    return TESS_OK;
}

tess_status tess_watch_connect(const tess_watch_settings *settings, const tess_watch_address *address,
                               tess_watch **out, tess_error *error)
{
    tess_watch *watch;
    tess_status status = create(settings, &watch, error);
    if (status != TESS_OK)
        return give_up(watch, status);
    const double end = tess_clock() + settings->connect_seconds;
    watch->peers[0].socket = tess_socket_connect(address, settings->rank, end, error);
    if (watch->peers[0].socket < 0)
        return give_up(watch, TESS_IO_FAILED);
    *out = watch;
    return TESS_OK;
}

static tess_status accept_all(tess_watch *watch, tess_error *error)
{
    const double end = tess_clock() + watch->settings.connect_seconds;
    for (int missing = watch->count; missing > 0;) {
        int rank = 0;
        const int socket =
            tess_socket_accept(watch->listener, watch->secret, watch->settings.size, end, &rank);
        if (socket < 0) {
            while (watch->peers[rank].socket >= 0)
                rank++;
            tess_watch_name(watch, rank + 1, "does not connect to rank 0", error);
            return TESS_IO_FAILED;
        }
        if (watch->peers[rank - 1].socket >= 0) {
            close(socket); /* it was here already */
            continue;
        }
        watch->peers[rank - 1].socket = socket;
        missing--;
    }
    close(watch->listener);
    watch->listener = -1;
    return TESS_OK;
}

tess_status tess_watch_start(tess_watch *watch, tess_error *error)
{
    if (watch->settings.rank == 0)
        TESS_TRY(accept_all(watch, error));
    watch->running = tess_thread_start(&watch->thread, STACK, tess_watch_run, watch);
    return watch->running
               ? TESS_OK
               : tess_fail(error, TESS_NO_MEMORY, "cannot start the thread that watches the ranks");
}

/* Rank 0 says that it leaves when all the others have said so, and they wait for it: so nobody is alone with a rank that
 * hangs at the end. */
void tess_watch_leave(tess_watch *watch)
{
    if (!watch || !watch->running)
        return;
    pthread_mutex_lock(&watch->mutex);
    watch->leaving = true;
    if (watch->settings.rank != 0)
        tess_watch_send(&watch->peers[0], TESS_WATCH_LEAVES, 0, 0);
    pthread_mutex_unlock(&watch->mutex);
    (void)!write(watch->wake[1], "", 1);
    pthread_join(watch->thread, NULL);
    watch->running = false;
}

void tess_watch_close(tess_watch *watch)
{
    if (!watch)
        return;
    pthread_mutex_lock(&watch->mutex);
    watch->closing = true;
    for (int i = 0; i < watch->count && watch->peers; i++)
        tess_watch_send(&watch->peers[i], TESS_WATCH_LEAVES, 0, 0);
    pthread_mutex_unlock(&watch->mutex);
    if (watch->running) {
        (void)!write(watch->wake[1], "", 1);
        pthread_join(watch->thread, NULL);
    }
    for (int i = 0; i < watch->count && watch->peers; i++)
        if (watch->peers[i].socket >= 0)
            close(watch->peers[i].socket);
    for (int i = 0; i < 2; i++)
        if (watch->wake[i] >= 0)
            close(watch->wake[i]);
    if (watch->listener >= 0)
        close(watch->listener);
    pthread_cond_destroy(&watch->answered);
    pthread_mutex_destroy(&watch->mutex);
    tess_small_free(watch->peers);
    tess_small_free(watch->polled);
    tess_small_free(watch);
}

int64_t tess_watch_next(tess_watch *watch, uint32_t counter)
{
    int64_t taken;
    pthread_mutex_lock(&watch->mutex);
    if (watch->settings.rank == 0) {
        taken = tess_watch_take(watch, counter);
    } else {
        watch->waiting = true;
        tess_watch_send(&watch->peers[0], TESS_WATCH_ASKS, counter, 0);
        while (watch->waiting) /* if rank 0 is lost, this process ends */
            pthread_cond_wait(&watch->answered, &watch->mutex);
        taken = watch->answer;
    }
    pthread_mutex_unlock(&watch->mutex);
    return taken;
}

void tess_watch_drain(tess_watch *watch, uint32_t counter)
{
    pthread_mutex_lock(&watch->mutex);
    if (watch->settings.rank == 0)
        tess_watch_empty(watch, counter);
    else
        tess_watch_send(&watch->peers[0], TESS_WATCH_DRAINS, counter, 0);
    pthread_mutex_unlock(&watch->mutex);
}

void tess_watch_report(tess_watch *watch, int64_t done)
{
    pthread_mutex_lock(&watch->mutex);
    watch->done = done;
    pthread_mutex_unlock(&watch->mutex);
}

int64_t tess_watch_reported(tess_watch *watch)
{
    int64_t sum = 0;
    pthread_mutex_lock(&watch->mutex);
    for (int i = 0; i < watch->count && watch->settings.rank == 0; i++)
        sum += watch->peers[i].done;
    pthread_mutex_unlock(&watch->mutex);
    return sum;
}
