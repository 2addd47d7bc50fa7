#include "job/study/bench_scaling_strip.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/help.h"
#include "base/rng.h"
#include "net/neighbours.h"
#include "plan/ranks/timetable.h"

/* Exchanges with the neighbours, how long this rank was inside of them, and how long it computed before the first and after each. */
typedef struct timed_neighbours {
    tess_neighbours neighbours;
    double seconds, sent;
    double *computed; /* stages + 1 */
    int stage, stages;
    double since; /* it computes */
} timed_neighbours;

static void count_stage(timed_neighbours *t, double now)
{
    t->computed[t->stage] += now - t->since;
}

static void begin(void *user, const tess_exchange *e, tess_stream *stream)
{
    timed_neighbours *t = user;
    const double start = tess_clock();
    count_stage(t, start);
    t->stage += t->stage < t->stages;
    t->sent += (double)(tess_exchange_bytes(e, e->above) + tess_exchange_bytes(e, e->below));
    tess_neighbours_exchanger.begin(&t->neighbours, e, stream);
    t->since = tess_clock();
    t->seconds += t->since - start;
}

static void end(void *user, const tess_exchange *e, tess_stream *stream)
{
    timed_neighbours *t = user;
    const double start = tess_clock();
    count_stage(t, start);
    tess_neighbours_exchanger.end(&t->neighbours, e, stream);
    t->since = tess_clock();
    t->seconds += t->since - start;
}

static const tess_exchanger exchanger = {begin, end};

/* One rank's strip. */
typedef struct strip {
    const tess_strip_job *job;
    tess_device *device;
    tess_net_plan *plan; /* NULL: nothing to do */
    tess_block arena, workspace;
    double expected; /* seconds of a pass by the rates */
    tess_timetable timetable;
    timed_neighbours timed;
} strip;

static tess_status open_strip(strip *s, const tess_strips *strips, tess_error *error)
{
    const tess_strip_job *job = s->job;
    const tess_net *net = job->model->model.net;
    tess_dist *dist = job->engine->dist;
    const int rank = job->alone ? 0 : dist->rank;
    if (rank >= strips->count)
        return TESS_OK;
    tess_plan_shape shape = {
        .n = 1,
        .h = tess_round_up(tess_strips_rows(strips, rank), tess_net_grid(net, TESS_HEIGHT)),
        .w = tess_round_up(job->width, tess_net_grid(net, TESS_WIDTH)),
        .above = rank > 0,
        .below = rank + 1 < strips->count,
        .levels = tess_strips_level_rows(strips, rank)};
    if (strips->by_level)
        shape.h = shape.levels.rows[0];
    TESS_TRY(tess_net_plan_create(job->model->bound, shape, &s->plan, error));
    TESS_TRY(s->device->memory->alloc(s->device, &s->arena, TESS_MEM_ACTIVATIONS,
                                      tess_net_plan_arena_bytes(s->plan), error));
    TESS_TRY(s->device->memory->alloc(s->device, &s->workspace, TESS_MEM_WORKSPACE,
                                      tess_net_plan_workspace_bytes(s->plan), error));
    TESS_TRY(tess_net_plan_prepare(s->plan, error));
    /* The system gives pages when they are first written; iterations of a job find them there. */
    memset(s->arena.data, 0, tess_net_plan_arena_bytes(s->plan));
    memset(s->workspace.data, 0, tess_net_plan_workspace_bytes(s->plan));
    bool measured = true;
    s->expected = tess_rates_plan_seconds(job->engine->rates, s->plan, &measured);
    TESS_TRY(tess_timetable_make(job->model->bound, job->engine->rates, shape, &s->timetable, error));
    s->timed.stages = s->timetable.count;
    s->timed.computed = tess_small_alloc((size_t)s->timed.stages + 1, sizeof *s->timed.computed);
    if (!s->timed.computed)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for times");
    return tess_neighbours_open(&s->timed.neighbours, dist, 1, error);
}

static void close_strip(strip *s)
{
    tess_neighbours_close(&s->timed.neighbours);
    tess_timetable_clear(&s->timetable);
    tess_small_free(s->timed.computed);
    tess_net_plan_destroy(s->plan);
    s->device->memory->free(s->device, &s->arena);
    s->device->memory->free(s->device, &s->workspace);
}

/* The layers write over the input, so every pass begins with new pixels. */
static void fill_input(const strip *s)
{
    size_t offset;
    const tess_tensor in = tess_net_plan_input(s->plan, &offset);
    float *values = (float *)(void *)((char *)s->arena.data + offset);
    tess_rng_uniform((tess_rng_key){s->job->seed, 0, 1}, 0, in.n * in.h * in.w * in.c, values);
}

static void run_strip(strip *s)
{
    const tess_net_run run = {.arena = s->arena.data,
                              .workspace = s->workspace.data,
                              .weights = s->job->model->weights.data,
                              .exchanger = &exchanger,
                              .exchange_user = &s->timed};
    tess_net_plan_execute(s->plan, &run);
}

/* What ranks tell each other about a pass. */
typedef struct pass {
    double seconds, waiting, expected;
    int64_t helped;
} pass;

static tess_status one_pass(strip *s, pass *all, pass *slowest, tess_error *error)
{
    tess_dist *dist = s->job->engine->dist;
    tess_status status = TESS_OK;
    if (s->plan)
        fill_input(s);
    TESS_TRY(tess_dist_barrier(dist, error));
    const double start = tess_clock();
    const int64_t helped = tess_help_parts(dist->help);
    s->timed.seconds = s->timed.sent = 0;
    if (s->plan) {
        for (int i = 0; i <= s->timed.stages; i++)
            s->timed.computed[i] = 0;
        s->timed.stage = 0;
        s->timed.since = start;
        run_strip(s);
        count_stage(&s->timed, tess_clock());
        status = s->device->streams->sync(s->device, NULL, error);
        if (status == TESS_OK && s->timed.neighbours.status != TESS_OK)
            status = tess_fail(error, s->timed.neighbours.status, "%s", s->timed.neighbours.error.text);
    }
    const pass mine = {s->plan ? tess_clock() - start : 0, s->timed.seconds, s->expected,
                       tess_help_parts(dist->help) - helped};
    TESS_TRY(tess_dist_agree(dist, status, error));
    TESS_TRY(tess_dist_gather(dist, &mine, sizeof mine, all, error));
    *slowest = all[0];
    for (int r = 1; r < dist->size; r++)
        if (all[r].seconds > slowest->seconds)
            *slowest = all[r];
    return TESS_OK;
}

/* The largest of a number of each rank. */
static tess_status most_of(tess_dist *dist, double *value, tess_error *error)
{
    double most = *value;
    for (int r = 0; r < dist->size; r++) {
        double theirs = *value;
        TESS_TRY(tess_dist_broadcast(dist, r, &theirs, sizeof theirs, error));
        most = fmax(most, theirs);
    }
    *value = most;
    return TESS_OK;
}

static tess_status time_pass(strip *s, tess_strip_times *times, double *found, tess_error *error)
{
    tess_dist *dist = s->job->engine->dist;
    pass slowest, *all = tess_small_alloc((size_t)dist->size, sizeof *all);
    tess_status status = all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for times");
    status = tess_dist_agree(dist, status, error);
    if (status == TESS_OK)
        status = one_pass(s, all, &slowest, error);
    if (status == TESS_OK) {
        double images = 0;
        times->seconds = slowest.seconds;
        times->waiting = slowest.waiting;
        for (int r = 0; r < dist->size; r++) {
            const double busy = all[r].seconds - all[r].waiting;
            times->busy += busy / (double)(s->job->alone ? dist->size : times->strips.count);
            times->helped += all[r].helped;
            images += all[r].seconds > 0 ? 1 / all[r].seconds : 0;
            found[r] = busy > 0 && all[r].expected > 0 ? all[r].expected / busy : 1;
        }
        times->together = images > 0 ? 1 / images : 0;
    }
    tess_small_free(all);
    return status;
}

/* Gathers how fast each rank was in each stage; 1 where it had none. */
static tess_status gather_stages(const strip *s, tess_strip_times *times, tess_error *error)
{
    tess_dist *dist = s->job->engine->dist;
    int stages = s->timed.stages;
    TESS_TRY(tess_dist_broadcast(dist, 0, &stages, sizeof stages, error));
    const size_t each = (size_t)stages + 1;
    double *mine = tess_small_alloc(each, sizeof *mine),
           *all = tess_small_alloc(each * (size_t)dist->size, sizeof *all);
    tess_status status = mine && all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for times");
    status = tess_dist_agree(dist, status, error);
    for (int i = 0; i <= stages && status == TESS_OK; i++) {
        const tess_timetable *t = &s->timetable;
        const bool has = s->plan && s->timed.stages == stages && s->timed.computed[i] > 0;
        const double expected = !has ? 0 : i == 0 ? t->before : tess_stage_seconds(&t->stages[i - 1]);
        mine[i] = expected > 0 ? expected / s->timed.computed[i] : 1;
    }
    if (status == TESS_OK)
        status = tess_dist_gather(dist, mine, each * sizeof *mine, all, error);
    tess_small_free(mine);
    if (status != TESS_OK) {
        tess_small_free(all);
        return status;
    }
    times->of_stage = all;
    times->stages = stages;
    return TESS_OK;
}

static tess_status count_bytes(const strip *s, tess_strip_times *times, tess_error *error)
{
    tess_dist *dist = s->job->engine->dist;
    tess_mem_usage peak;
    double planned = 0, counted, sent = s->timed.sent;
    tess_memory_peak(s->device->counter, tess_engine_scope(s->job->engine), &peak);
    counted = (double)peak.total;
    if (s->plan)
        planned = (double)s->device->memory->granted(s->device, tess_net_plan_arena_bytes(s->plan)) +
                  (double)s->device->memory->granted(s->device, tess_net_plan_workspace_bytes(s->plan)) +
                  (double)s->job->model->weights.bytes;
    TESS_TRY(most_of(dist, &planned, error));
    TESS_TRY(most_of(dist, &counted, error));
    TESS_TRY(most_of(dist, &sent, error));
    times->planned_bytes = (uint64_t)planned;
    times->bytes = (uint64_t)counted;
    times->sent = sent;
    return TESS_OK;
}

tess_status tess_strip_measure(const tess_strip_job *job, tess_strip_times *times, double *found,
                               tess_error *error)
{
    tess_dist *dist = job->engine->dist;
    tess_strips strips =
        tess_strips_divide(job->model->bound, tess_net_grid(job->model->model.net, TESS_HEIGHT), job->height,
                           job->alone ? 1 : job->ranks);
    strip s = {.job = job, .device = job->engine->device};
    if (job->speeds && !job->alone)
        strips = tess_strips_by_speed(&strips, job->speeds);
    TESS_TRY(tess_dist_broadcast(dist, 0, &strips, sizeof strips, error)); /* rank 0's kernels decide */
    *times = (tess_strip_times){.strips = strips};
    tess_memory_reset_peak(s.device->counter);
    tess_status status = tess_dist_agree(dist, open_strip(&s, &strips, error), error);
    if (status == TESS_OK)
        status = time_pass(&s, times, found, error);
    if (status == TESS_OK)
        status = count_bytes(&s, times, error);
    if (status == TESS_OK && !job->alone)
        status = gather_stages(&s, times, error);
    close_strip(&s);
    return status;
}

/* Seconds of an exchange of `bytes` with both neighbours, the mean of `times`. */
static tess_status time_exchange(tess_dist *dist, tess_dist_exchange *exchange, char *data, size_t bytes,
                                 int times, double *seconds, tess_error *error)
{
    tess_dist_transfer list[2];
    int count = 0;
    for (int side = -1; side <= 1; side += 2) {
        const int peer = dist->rank + side;
        char *at = data + (side < 0 ? 0 : 2 * bytes);
        if (peer >= 0 && peer < dist->size)
            list[count++] = (tess_dist_transfer){peer, at, bytes, at + bytes, bytes};
    }
    TESS_TRY(tess_dist_barrier(dist, error));
    const double start = tess_clock();
    for (int i = 0; i < times; i++) {
        TESS_TRY(tess_dist_exchange_begin(exchange, list, count, error));
        TESS_TRY(tess_dist_exchange_end(exchange, error));
    }
    *seconds = (tess_clock() - start) / times;
    return most_of(dist, seconds, error);
}

tess_status tess_link_measure(tess_dist *dist, tess_links *links, tess_error *error)
{
    enum { SMALL = 64, LARGE = 1 << 20, SMALL_TIMES = 500, LARGE_TIMES = 50 };
    *links = (tess_links){
        .per_node = dist->size, .inside = {1e-6, 1e10, 1e10}, .outside = {1e-6, 1e10, dist->size, 1}};
    if (dist->size == 1)
        return TESS_OK;
    char *data = tess_small_alloc(4, LARGE);
    tess_dist_exchange *exchange = NULL;
    double small = 0, large = 0;
    tess_status status = data ? tess_dist_exchange_create(dist, 2, &exchange, error)
                              : tess_fail(error, TESS_NO_MEMORY, "no memory for messages");
    status = tess_dist_agree(dist, status, error);
    for (int i = 0; i < 2 && status == TESS_OK; i++) { /* the first connects */
        status = time_exchange(dist, exchange, data, SMALL, SMALL_TIMES, &small, error);
        if (status == TESS_OK)
            status = time_exchange(dist, exchange, data, LARGE, LARGE_TIMES, &large, error);
    }
    tess_dist_exchange_destroy(exchange);
    tess_small_free(data);
    links->inside.latency = links->outside.latency = small;
    links->inside.rate = links->inside.rank_rate = links->outside.rate = LARGE / fmax(large - small, 1e-9);
    return status;
}
