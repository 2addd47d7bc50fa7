/* test_pool.c: every item is processed exactly once before run returns, and a thread number never processes two at a
 * time (each has its own scratch); a worker returns status and message and finishes what it started. */
#define _POSIX_C_SOURCE 200809L
#include "base/pool.h"

#include <stdatomic.h>
#include <time.h>

#include "support.h"

enum { MOST_ITEMS = 3000, MOST_THREADS = 5 };

typedef struct tally {
    _Atomic int done[MOST_ITEMS];
    _Atomic int busy[MOST_THREADS];
    _Atomic int wrong;
    int threads;
} tally;

static void count_item(void *arg, int64_t item, int thread)
{
    tally *t = arg;
    if (thread < 0 || thread >= t->threads || item < 0 || item >= MOST_ITEMS) {
        atomic_fetch_add(&t->wrong, 1);
        return;
    }
    if (atomic_exchange(&t->busy[thread], 1))
        atomic_fetch_add(&t->wrong, 1);
    atomic_fetch_add(&t->done[item], 1);
    for (volatile int64_t spin = item % 7 == 0 ? 300 : 0; spin > 0;) /* some take longer */
        spin = spin - 1;
    atomic_store(&t->busy[thread], 0);
}

static void test_sizes(tess_pool *pool, int threads)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 31, 64, 65, 1000, MOST_ITEMS};
    static tally t;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int repeat = 0; repeat < 5; repeat++) {
            memset(&t, 0, sizeof t);
            t.threads = threads;
            tess_pool_run(pool, sizes[s], count_item, &t);
            int once = 0, others = 0;
            for (int i = 0; i < MOST_ITEMS; i++) {
                once += i < sizes[s] && t.done[i] == 1;
                others += i >= sizes[s] && t.done[i] != 0;
            }
            CHECK_MSG(once == sizes[s] && others == 0 && t.wrong == 0,
                      "%d threads, %lld items: %d once, %d wrong", threads, (long long)sizes[s], once,
                      t.wrong);
        }
}

/* The caller is done long before the others: run must still wait for them. */
static void linger(void *arg, int64_t item, int thread)
{
    _Atomic int *done = arg;
    if (thread)
        nanosleep(&(struct timespec){0, 300000}, NULL);
    else
        for (volatile int spin = 3000; spin > 0;)
            spin = spin - 1;
    atomic_fetch_add(&done[item], 1);
}

static void test_waits(tess_pool *pool, int threads)
{
    for (int repeat = 0; repeat < 40; repeat++) {
        _Atomic int done[16] = {0};
        int sum = 0;
        tess_pool_run(pool, 16, linger, done);
        for (int i = 0; i < 16; i++)
            sum += done[i];
        CHECK_MSG(sum == 16, "%d threads: %d of 16 were done", threads, sum);
    }
}

/* Loop after loop without a breath, each reading what the last one wrote. */
typedef struct relay {
    const int64_t *from;
    int64_t *to;
    int64_t count;
} relay;

static void pass_on(void *arg, int64_t item, int thread)
{
    (void)thread;
    const relay *r = arg;
    r->to[item] = r->from[(item + 1) % r->count] + 1;
}

/* Values that came out wrong. */
static int64_t run_relay(tess_pool *pool, int loops, uint64_t seed)
{
    dice d = {seed};
    int64_t fields[2][8], wrong = 0;
    for (int i = 0; i < 8; i++)
        fields[0][i] = fields[1][i] = i;
    for (int i = 0; i < loops; i++) {
        relay r = {fields[i % 2], fields[(i + 1) % 2], 8};
        tess_pool_run(pool, 8, pass_on, &r);
        for (int k = 0; k < 8; k++)
            wrong += r.to[k] != i + 1 + (k + i + 1) % 8;
        if (pick(&d, 0, 99) == 0) /* a short rest, so that threads fall asleep now and then */
            for (volatile int spin = 100000; spin > 0;)
                spin = spin - 1;
    }
    return wrong;
}

typedef struct relay_call {
    tess_pool *pool;
    int64_t wrong;
} relay_call;

static tess_status call_relay(void *arg, tess_error *error)
{
    (void)error;
    relay_call *call = arg;
    call->wrong = run_relay(call->pool, 500, 77);
    return TESS_OK;
}

/* Two pools at a time, one of them inside a worker's call. */
static void test_two_pools(void)
{
    tess_error error = {{0}};
    tess_pool *pool = NULL;
    relay_call call = {NULL, -1};
    tess_worker *worker = NULL;
    CHECK(tess_pool_create(2, &call.pool, &error) == TESS_OK &&
          tess_pool_create(3, &pool, &error) == TESS_OK);
    CHECK(tess_worker_create(&worker, &error) == TESS_OK);
    uint64_t calls = tess_mem_calls();
    tess_worker_start(worker, call_relay, &call);
    CHECK(run_relay(pool, 500, 78) == 0);
    CHECK(tess_worker_wait(worker, &error) == TESS_OK && call.wrong == 0);
    CHECK(tess_mem_calls() == calls);
    tess_worker_destroy(worker);
    tess_pool_destroy(call.pool);
    tess_pool_destroy(pool);
}

typedef struct errand {
    int number;
    _Atomic int done;
} errand;

/* Every third fails, with its number in the message. */
static tess_status run_errand(void *arg, tess_error *error)
{
    errand *e = arg;
    for (volatile int spin = 20000; spin > 0;)
        spin = spin - 1;
    atomic_fetch_add(&e->done, 1);
    return e->number % 3 ? TESS_OK : tess_fail(error, TESS_IO_FAILED, "errand %d failed", e->number);
}

static void test_worker(void)
{
    tess_error error = {{0}};
    tess_worker *worker = NULL;
    CHECK(tess_worker_create(&worker, &error) == TESS_OK);
    CHECK(tess_worker_wait(worker, &error) == TESS_OK); /* nothing was started */
    for (int i = 0; i < 300; i++) {
        errand e = {i, 0};
        char text[64];
        snprintf(text, sizeof text, "errand %d failed", i);
        strcpy(error.text, "untouched");
        tess_worker_start(worker, run_errand, &e);
        tess_status status = tess_worker_wait(worker, i % 2 ? &error : NULL);
        CHECK_MSG(e.done == 1, "errand %d done %d times", i, e.done);
        CHECK(status == (i % 3 ? TESS_OK : TESS_IO_FAILED));
        CHECK_MSG(strcmp(error.text, i % 2 && i % 3 == 0 ? text : "untouched") == 0, "%s", error.text);
        CHECK(tess_worker_wait(worker, &error) == TESS_OK); /* reported once */
    }
    errand last = {0, 0};
    tess_worker_start(worker, run_errand, &last);
    tess_worker_destroy(worker);
    CHECK(last.done == 1); /* what had begun was finished */
    tess_worker_destroy(NULL);
}

int main(void)
{
    tess_error error = {{0}};
    CHECK(tess_cpu_count() >= 1);
    for (int threads = 1; threads <= MOST_THREADS; threads++) {
        tess_pool *pool = NULL;
        CHECK_MSG(tess_pool_create(threads, &pool, &error) == TESS_OK, "%s", error.text);
        CHECK(tess_pool_threads(pool) == threads);
        uint64_t calls = tess_mem_calls();
        test_sizes(pool, threads);
        test_waits(pool, threads);
        int64_t wrong = run_relay(pool, 1000, 5);
        CHECK_MSG(wrong == 0, "%d threads: %lld values", threads, (long long)wrong);
        CHECK(tess_mem_calls() == calls);
        tess_pool_destroy(pool);
    }
    tess_pool *pool = NULL;
    CHECK(tess_pool_create(0, &pool, &error) == TESS_OK && tess_pool_threads(pool) == tess_cpu_count());
    tess_pool_destroy(pool);
    for (int i = 0; i < 50; i++) { /* made and dropped without work */
        CHECK(tess_pool_create(4, &pool, &error) == TESS_OK);
        tess_pool_destroy(pool);
    }
    tess_pool_destroy(NULL);
    test_two_pools();
    test_worker();
    return check_end();
}
