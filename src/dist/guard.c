#define _POSIX_C_SOURCE 200809L
#include "dist/guard.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/thread.h"

static const size_t STACK = (size_t)256 << 10;
enum { STEP = 1 }; /* seconds */

struct tess_guard {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool done;
    double left; /* seconds */
    void (*late)(void *user);
    void *user;
};

static void *wait_for_end(void *arg)
{
    tess_guard *guard = arg;
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    pthread_mutex_lock(&guard->mutex);
    /* Only time in which this process runs counts: one that was stopped is the one that is late, and a launcher that
     * ends it lets it go on first. */
    while (!guard->done && guard->left > 0) {
        struct timespec next;
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_sec += STEP;
        (void)pthread_cond_timedwait(&guard->changed, &guard->mutex, &next);
        guard->left -= STEP;
    }
    const bool done = guard->done;
    pthread_mutex_unlock(&guard->mutex);
    if (!done)
        guard->late(guard->user);
    return NULL;
}

double tess_guard_silence(void)
{
    static const double SILENCE = 15;
    const char *text = getenv("TESSERA_RANK_SECONDS");
    const double seconds = text ? strtod(text, NULL) : 0;
    return seconds >= 1 && seconds <= 86400 ? seconds : SILENCE;
}

static void release(tess_guard *guard)
{
    pthread_cond_destroy(&guard->changed);
    pthread_mutex_destroy(&guard->mutex);
    tess_small_free(guard);
}

tess_guard *tess_guard_begin(double seconds, void (*late)(void *user), void *user)
{
    tess_guard *guard = tess_small_alloc(1, sizeof *guard);
    if (!guard)
        return NULL;
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&guard->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&guard->mutex, NULL);
    guard->left = seconds;
    guard->late = late;
    guard->user = user;
    if (tess_thread_start(&guard->thread, STACK, wait_for_end, guard))
        return guard;
    release(guard);
    return NULL;
}

void tess_guard_end(tess_guard *guard)
{
    if (!guard)
        return;
    pthread_mutex_lock(&guard->mutex);
    guard->done = true;
    pthread_cond_signal(&guard->changed);
    pthread_mutex_unlock(&guard->mutex);
    pthread_join(guard->thread, NULL);
    release(guard);
}
