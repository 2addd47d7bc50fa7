/* A loop hands out items through one atomic counter, so that one slow item does not delay the others. Between
 * loops threads spin for a short time, since layers follow each other within microseconds, and then sleep on a
 * condition. */
#define _GNU_SOURCE
#include "base/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "base/thread.h"
#include "base/trace.h"

enum { SPINS = 4000 };

static const size_t STACK = (size_t)1 << 20; /* kernels keep a few KiB there */

typedef struct helper_start {
    tess_pool *pool;
    int index;
} helper_start;

struct tess_pool {
    int threads;
    int started; /* number of helper threads that exist: threads - 1 once created */
    pthread_t *helpers;
    helper_start *starts; /* for each helper: its start argument */
    pthread_mutex_t mutex;
    pthread_cond_t wake, finished;
    _Atomic uint64_t generation; /* increased for each new loop and at the end */
    _Atomic int running;
    _Atomic int64_t next;
    int64_t items;
    tess_loop_fn fn;
    void *arg;
    bool stop;
    tess_stop *watch; /* NULL: loops run to their end */
    tess_trace *trace;
    const char *label; /* of the running loop, if it is traced */
};

int tess_cpu_count(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1;
    int count = CPU_COUNT(&set);
    return count > 0 ? count : 1;
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

static void take_items(tess_pool *pool, int thread)
{
    for (int64_t item; (item = atomic_fetch_add(&pool->next, 1)) < pool->items;) {
        if (thread == 0 ? tess_stop_poll_part(pool->watch, item, pool->items) : tess_stop_wanted(pool->watch))
            return;
        pool->fn(pool->arg, item, thread);
    }
}

/* This thread neither allocates nor frees: its first such call would reserve 64 MiB of address space for a
 * heap. */
static void *helper_main(void *arg)
{
    const helper_start start = *(helper_start *)arg;
    tess_pool *pool = start.pool;
    for (uint64_t seen = 0;;) {
        for (int spin = 0; spin < SPINS && atomic_load(&pool->generation) == seen; spin++)
            relax();
        pthread_mutex_lock(&pool->mutex);
        while (atomic_load(&pool->generation) == seen)
            pthread_cond_wait(&pool->wake, &pool->mutex);
        seen = atomic_load(&pool->generation);
        bool stop = pool->stop;
        pthread_mutex_unlock(&pool->mutex);
        if (stop) {
            tess_trace_leave();
            return NULL;
        }
        const double from = tess_trace_begin(pool->trace);
        take_items(pool, start.index);
        tess_trace_end(pool->trace, TESS_TRACE_LOOP, pool->label, from);
        if (atomic_fetch_sub(&pool->running, 1) == 1) {
            pthread_mutex_lock(&pool->mutex);
            pthread_cond_signal(&pool->finished);
            pthread_mutex_unlock(&pool->mutex);
        }
    }
}

tess_status tess_pool_create(int threads, tess_pool **out, tess_error *error)
{
    *out = NULL;
    if (threads <= 0)
        threads = tess_cpu_count();
    tess_pool *pool = tess_small_alloc(1, sizeof *pool);
    if (pool) {
        pool->helpers = tess_small_alloc((size_t)threads, sizeof *pool->helpers);
        pool->starts = tess_small_alloc((size_t)threads, sizeof *pool->starts);
    }
    if (!pool || !pool->helpers || !pool->starts) {
        if (pool) {
            tess_small_free(pool->helpers);
            tess_small_free(pool->starts);
        }
        tess_small_free(pool);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %d threads", threads);
    }
    pool->threads = threads;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->wake, NULL);
    pthread_cond_init(&pool->finished, NULL);
    for (int i = 1; i < threads; i++) {
        pool->starts[i] = (helper_start){pool, i};
        if (!tess_thread_start(&pool->helpers[pool->started], STACK, helper_main, &pool->starts[i])) {
            tess_pool_destroy(pool);
            return tess_fail(error, TESS_NO_MEMORY, "cannot start %d threads; use a smaller `threads`",
                             threads);
        }
        pool->started++;
    }
    *out = pool;
    return TESS_OK;
}

void tess_pool_destroy(tess_pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->helpers[i], NULL);
    pthread_mutex_destroy(&pool->mutex);
    pthread_cond_destroy(&pool->wake);
    pthread_cond_destroy(&pool->finished);
    tess_small_free(pool->helpers);
    tess_small_free(pool->starts);
    tess_small_free(pool);
}

int tess_pool_threads(const tess_pool *pool)
{
    return pool->threads;
}

void tess_pool_watch(tess_pool *pool, tess_stop *stop)
{
    pool->watch = stop;
}

void tess_pool_trace(tess_pool *pool, tess_trace *trace)
{
    pool->trace = trace;
}

void tess_pool_run(tess_pool *pool, int64_t items, tess_loop_fn fn, void *arg)
{
    if (pool->started == 0 || items <= 1) {
        for (int64_t item = 0; item < items && !tess_stop_poll_part(pool->watch, item, items); item++)
            fn(arg, item, 0);
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->fn = fn;
    pool->arg = arg;
    pool->items = items;
    pool->label = pool->trace ? tess_trace_labelled() : NULL;
    atomic_store(&pool->next, 0);
    atomic_store(&pool->running, pool->started);
    atomic_fetch_add(&pool->generation, 1);
    pthread_cond_broadcast(&pool->wake);
    pthread_mutex_unlock(&pool->mutex);
    take_items(pool, 0);
    for (int spin = 0; spin < SPINS && atomic_load(&pool->running) > 0; spin++)
        relax();
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load(&pool->running) > 0)
        pthread_cond_wait(&pool->finished, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}
