/* A thread beside the pool that runs one call at a time, such as the reader and the writer of a ring. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <time.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/thread.h"
#include "base/trace.h"

static const size_t STACK = (size_t)2 << 20; /* libraries decode and encode on this stack */

struct tess_worker {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    tess_call_fn fn; /* NULL when idle */
    void *arg;
    bool stop;
    tess_status status; /* of the last call, until it is waited for */
    tess_error error;
};

static void *worker_main(void *arg)
{
    tess_worker *worker = arg;
    pthread_mutex_lock(&worker->mutex);
    for (;;) {
        while (!worker->fn && !worker->stop)
            pthread_cond_wait(&worker->changed, &worker->mutex);
        if (!worker->fn)
            break;
        tess_call_fn fn = worker->fn;
        pthread_mutex_unlock(&worker->mutex);
        tess_error error = {{0}};
        tess_status status = fn(worker->arg, &error);
        pthread_mutex_lock(&worker->mutex);
        worker->status = status;
        worker->error = error;
        worker->fn = NULL;
        pthread_cond_broadcast(&worker->changed);
    }
    pthread_mutex_unlock(&worker->mutex);
    tess_trace_leave();
    return NULL;
}

tess_status tess_worker_create(tess_worker **out, tess_error *error)
{
    *out = NULL;
    tess_worker *worker = tess_small_alloc(1, sizeof *worker);
    if (!worker)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a thread");
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&worker->mutex, NULL);
    pthread_cond_init(&worker->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    if (!tess_thread_start(&worker->thread, STACK, worker_main, worker)) {
        pthread_mutex_destroy(&worker->mutex);
        pthread_cond_destroy(&worker->changed);
        tess_small_free(worker);
        return tess_fail(error, TESS_NO_MEMORY, "cannot start a thread; the system's limit is reached");
    }
    *out = worker;
    return TESS_OK;
}

void tess_worker_destroy(tess_worker *worker)
{
    if (!worker)
        return;
    pthread_mutex_lock(&worker->mutex);
    worker->stop = true;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
    pthread_join(worker->thread, NULL);
    pthread_mutex_destroy(&worker->mutex);
    pthread_cond_destroy(&worker->changed);
    tess_small_free(worker);
}

void tess_worker_start(tess_worker *worker, tess_call_fn fn, void *arg)
{
    pthread_mutex_lock(&worker->mutex);
    worker->fn = fn;
    worker->arg = arg;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->mutex);
}

bool tess_worker_busy(tess_worker *worker, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_mutex_lock(&worker->mutex);
    while (worker->fn && pthread_cond_timedwait(&worker->changed, &worker->mutex, &until) == 0)
        continue;
    const bool busy = worker->fn != NULL;
    pthread_mutex_unlock(&worker->mutex);
    return busy;
}

tess_status tess_worker_wait(tess_worker *worker, tess_error *error)
{
    pthread_mutex_lock(&worker->mutex);
    while (worker->fn)
        pthread_cond_wait(&worker->changed, &worker->mutex);
    tess_status status = worker->status;
    if (status != TESS_OK && error)
        *error = worker->error;
    worker->status = TESS_OK;
    pthread_mutex_unlock(&worker->mutex);
    return status;
}
