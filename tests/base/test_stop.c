/* test_stop.c: a stop request ends loops, networks, plans, allocations and rings early and is reported by the next
 * sync; the callback runs only on the caller's thread. */
#define _POSIX_C_SOURCE 200809L
#include "base/stop.h"

#include <stdatomic.h>
#include <time.h>

#include "base/pool.h"
#include "counter.h"
#include "support.h"
#include "tile/ring.h"

/* What the callback saw, and how often it goes on saying yes. */
typedef struct caller {
    pthread_t thread;
    int64_t calls, most, last_done, last_total, other_threads, backwards;
} caller;

static bool progress(void *user, int64_t done, int64_t total, double seconds)
{
    caller *c = user;
    (void)seconds;
    c->other_threads += !pthread_equal(c->thread, pthread_self());
    c->backwards += done < c->last_done || done > total;
    c->last_done = done;
    c->last_total = total;
    return c->calls++ < c->most;
}

static caller new_caller(int64_t most)
{
    return (caller){.thread = pthread_self(), .most = most};
}

static void slow_item(void *arg, int64_t item, int thread)
{
    (void)item;
    (void)thread;
    atomic_fetch_add((_Atomic int64_t *)arg, 1);
    nanosleep(&(struct timespec){0, 200000}, NULL);
}

static void test_pool(int threads)
{
    enum { ITEMS = 3000 };
    tess_error error;
    tess_pool *pool = NULL;
    tess_stop stop;
    caller c = new_caller(1);
    _Atomic int64_t done = 0;
    CHECK(tess_pool_create(threads, &pool, &error) == TESS_OK);
    tess_stop_init(&stop, progress, &c);
    tess_pool_watch(pool, &stop);
    tess_pool_run(pool, ITEMS, slow_item, &done);
    CHECK_MSG(done < ITEMS && tess_stop_wanted(&stop), "%d threads: %lld items done", threads,
              (long long)done);
    const int64_t before = done;
    tess_pool_run(pool, ITEMS, slow_item, &done);
    CHECK(done == before);
    tess_pool_watch(pool, NULL);
    tess_pool_run(pool, 50, slow_item, &done);
    CHECK(done == before + 50 && c.other_threads == 0);
    tess_pool_destroy(pool);
}

/* On another thread: reads the flag, calls no callback. */
static tess_status poll_elsewhere(void *arg, tess_error *error)
{
    tess_stop_add(arg, 5);
    return tess_stop_check(arg, error);
}

static void test_threads(void)
{
    tess_error error;
    tess_worker *worker = NULL;
    tess_stop stop;
    caller c = new_caller(1);
    CHECK(tess_worker_create(&worker, &error) == TESS_OK);
    tess_stop_init(&stop, progress, &c);
    tess_stop_begin(&stop, 10);
    tess_worker_start(worker, poll_elsewhere, &stop);
    CHECK(tess_worker_wait(worker, &error) == TESS_OK && c.calls == 0 && stop.done == 5);
    CHECK(!tess_stop_poll(&stop) && c.calls == 1 && c.last_done == 5 && c.last_total == 10);
    CHECK(!tess_stop_poll(&stop) && c.calls == 1); /* not so soon again */
    tess_stop_add(&stop, 1);
    CHECK(c.calls == 2 && c.last_done == 6 && tess_stop_poll(&stop));
    tess_worker_start(worker, poll_elsewhere, &stop);
    CHECK(tess_worker_wait(worker, &error) == TESS_INTERRUPTED && strstr(error.text, "stopped"));
    CHECK(c.other_threads == 0 && c.backwards == 0);
    tess_worker_destroy(worker);
    CHECK(!tess_stop_poll(NULL) && tess_stop_check(NULL, &error) == TESS_OK);
}

typedef struct gate {
    atomic_bool open;
    bool passed;
} gate;

static tess_status pass(void *arg, tess_error *error)
{
    (void)error;
    gate *g = arg;
    while (!atomic_load(&g->open))
        nanosleep(&(struct timespec){0, 100000}, NULL);
    g->passed = true;
    return TESS_OK;
}

static void test_busy(void)
{
    tess_error error;
    tess_worker *worker = NULL;
    gate g = {.passed = false};
    atomic_init(&g.open, false);
    CHECK(tess_worker_create(&worker, &error) == TESS_OK);
    CHECK(!tess_worker_busy(worker, 0));
    tess_worker_start(worker, pass, &g);
    CHECK(tess_worker_busy(worker, 0.001) && tess_worker_busy(worker, 0));
    atomic_store(&g.open, true);
    while (tess_worker_busy(worker, 0.01))
        continue;
    CHECK(g.passed && tess_worker_wait(worker, &error) == TESS_OK);
    tess_worker_destroy(worker);
}

static void test_network(void)
{
    enum { SIDE = 64 };
    tess_error error = {{0}};
    tess_stop stop;
    caller c = new_caller(INT64_MAX);
    tess_device *device = NULL;
    tess_weights *weights = NULL;
    tess_model_net model;
    ready r;
    tess_stop_init(&stop, progress, &c);
    const tess_device_options options = {.memory = &test_counter, .threads = 2, .stop = &stop};
    CHECK(tess_registry_open("cpu", &options, &device, &error) == TESS_OK);
    CHECK(tess_model_open("random:dncnn", &weights, &error) == TESS_OK);
    CHECK(tess_model_recognise(weights, &model, &error) == TESS_OK);
    const tess_plan_shape shape = {1, SIDE, SIDE};
    CHECK_MSG(ready_make(model.net, device, TESS_F32, weights, shape, &r, &error) == TESS_OK, "%s",
              error.text);
    tess_stop_begin(&stop, 1000);
    c.calls = 0;
    memset(r.arena.data, 0, r.arena.bytes);
    tess_net_plan_run_counted(r.plan, r.arena.data, r.workspace.data, r.weights.data, NULL, 1000);
    CHECK(device->streams->sync(device, NULL, &error) == TESS_OK);
    CHECK_MSG(stop.done == 1000 && c.last_done == 1000 && c.calls >= 15 && c.backwards == 0,
              "%lld units in %lld calls", (long long)stop.done, (long long)c.calls);
    tess_stop_begin(&stop, 1000);
    c = new_caller(3); /* stops after a few layers */
    memset(r.arena.data, 0, r.arena.bytes);
    tess_net_plan_run_counted(r.plan, r.arena.data, r.workspace.data, r.weights.data, NULL, 1000);
    CHECK(device->streams->sync(device, NULL, &error) == TESS_INTERRUPTED && stop.done < 1000);
    const int64_t left = stop.done;
    tess_net_plan_run_counted(r.plan, r.arena.data, r.workspace.data, r.weights.data, NULL, 1000);
    CHECK(stop.done == left); /* no layer is begun any more */
    tess_net_plan *plan = NULL;
    CHECK(tess_net_plan_create(r.bound, shape, &plan, &error) == TESS_INTERRUPTED && !plan);
    tess_block block;
    CHECK(device->memory->alloc(device, &block, TESS_MEM_WORKSPACE, 1 << 20, &error) == TESS_INTERRUPTED &&
          !block.data);
    CHECK(tess_bound_load(r.bound, weights, r.weights.data, &error) == TESS_INTERRUPTED);
    ready_clear(&r);
    tess_model_clear(&model);
    tess_weights_close(weights);
    tess_registry_close(device);
}

/* A ring with a slow reader: the caller's thread polls while it waits. */
static tess_status slow_rows(void *user, int64_t first, int64_t count, void *rows, tess_error *error)
{
    (void)user, (void)first, (void)rows, (void)error;
    nanosleep(&(struct timespec){0, 20000000 * (count > 0)}, NULL);
    return TESS_OK;
}

static tess_status no_work(void *user, const tess_strip *strip, tess_error *error)
{
    (void)user, (void)strip, (void)error;
    return TESS_OK;
}

static tess_status count_rows(void *user, int64_t first, int64_t count, const void *rows, tess_error *error)
{
    (void)first, (void)rows, (void)error;
    *(int64_t *)user += count;
    return TESS_OK;
}

static void test_ring(int64_t tile)
{
    enum { ROWS = 64 };
    const size_t row = (size_t)1 << 20;
    tess_error error = {{0}};
    tess_stop stop;
    caller c = new_caller(2);
    int64_t written = 0;
    tess_stop_init(&stop, progress, &c);
    const tess_ring_settings ring = {.rows = tess_axis_cut(ROWS, tile, 0, 1),
                                     .image_rows = ROWS,
                                     .in_row_bytes = row,
                                     .out_row_bytes = row,
                                     .source = slow_rows,
                                     .worker = no_work,
                                     .sink = count_rows,
                                     .user = &written,
                                     .stop = &stop};
    void *buffer = room(tess_ring_bytes(&ring.rows, ROWS, row, row));
    CHECK(tess_ring_run(&ring, buffer, &error) == TESS_INTERRUPTED && strstr(error.text, "stopped"));
    CHECK_MSG(written < ROWS && c.other_threads == 0, "%lld rows written", (long long)written);
    free(buffer);
}

int main(void)
{
    test_pool(1);
    test_pool(3);
    test_threads();
    test_busy();
    test_network();
    test_ring(0);
    test_ring(16);
    return check_end();
}
