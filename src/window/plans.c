/* The plan cache of tess_windows. A cut has few shapes (edge and inner windows, full and last batches), so
 * linear search in a short list suffices. */
#include "window/window_impl.h"

#include <string.h>

#include "base/clock.h"
#include "base/stop.h"

static void drop_graph(tess_windows *w, tess_window_plan *plan)
{
    if (plan->graph)
        w->settings.device->graphs->release(w->settings.device, plan->graph);
    plan->graph = NULL;
}

static void drop(tess_windows *w, tess_window_plan *plan)
{
    drop_graph(w, plan);
    tess_net_plan_destroy(plan->plan);
    memset(plan, 0, sizeof *plan);
}

void tess_window_plans_drop_graphs(tess_windows *w)
{
    for (int i = 0; i < w->settings.keep; i++) {
        drop_graph(w, &w->plans[i]);
        w->plans[i].prepared = false;
    }
}

void tess_window_plans_clear(tess_windows *w)
{
    for (int i = 0; w->plans && i < w->settings.keep; i++)
        drop(w, &w->plans[i]);
}

tess_status tess_window_plan_for(tess_windows *w, const tess_bound *bound, tess_plan_shape shape,
                                 int under_way, tess_stream *stream, tess_window_plan **out,
                                 tess_error *error)
{
    tess_device *device = w->settings.device;
    tess_window_plan *oldest = &w->plans[0];
    w->turn++;
    for (int i = 0; i < w->settings.keep; i++) {
        tess_window_plan *known = &w->plans[i];
        if (known->plan && known->bound == bound && tess_plan_shape_same(&known->shape, &shape)) {
            known->used = w->turn;
            *out = known;
            return TESS_OK;
        }
        if (oldest->plan && (!known->plan || known->used < oldest->used))
            oldest = known;
    }
    if (oldest->plan && oldest->prepared && (!under_way || w->turn - oldest->used < (uint64_t)under_way))
        TESS_TRY(device->streams->sync(device, stream, error));
    drop(w, oldest);
    TESS_TRY(tess_net_plan_create(bound, shape, &oldest->plan, error));
    oldest->bound = bound;
    oldest->shape = shape;
    oldest->used = w->turn;
    *out = oldest;
    return TESS_OK;
}

static tess_status capture(tess_windows *w, tess_window_plan *plan, const void *weights, tess_error *error)
{
    tess_device *device = w->settings.device;
    if (w->settings.run_first) {
        tess_net_plan_run(plan->plan, w->arena.data, w->workspace.data, weights, w->capture);
        TESS_TRY(device->streams->sync(device, w->capture, error));
    }
    TESS_TRY(device->graphs->begin(device, w->capture, error));
    tess_net_plan_run(plan->plan, w->arena.data, w->workspace.data, weights, w->capture);
    const tess_status status = device->graphs->end(device, w->capture, &plan->graph, error);
    w->capture_failed = w->capture_failed || status != TESS_OK;
    return status;
}

static tess_status prepare(tess_windows *w, tess_window_plan *plan, const void *weights, tess_error *error)
{
    const tess_plan_shape *shape = &plan->shape;
    TESS_TRY(tess_net_plan_prepare(plan->plan, error));
    if (tess_net_plan_arena_bytes(plan->plan) > w->arena.bytes ||
        tess_net_plan_workspace_bytes(plan->plan) > w->workspace.bytes)
        return tess_fail(error, TESS_INTERNAL,
                         "%lld window(s) of %lld x %lld x %lld need more memory than was planned",
                         (long long)shape->n, (long long)shape->d, (long long)shape->h, (long long)shape->w);
    /* a graph cannot hold messages between ranks: a plan with exchanges runs step by step */
    const bool captures = w->settings.graphs && tess_net_plan_exchange_count(plan->plan) == 0;
    return captures ? capture(w, plan, weights, error) : TESS_OK;
}

tess_status tess_window_plan_prepare(tess_windows *w, tess_window_plan *plan, const void *weights,
                                     tess_error *error)
{
    if (plan->prepared && (!plan->graph || plan->weights == weights))
        return TESS_OK;
    const double start = tess_clock();
    drop_graph(w, plan);
    const tess_status status = prepare(w, plan, weights, error);
    if (status != TESS_OK) {
        drop(w, plan);
        return status;
    }
    plan->prepared = true;
    plan->weights = weights;
    const double seconds = tess_clock() - start;
    w->shapes++;
    w->shape_total += seconds;
    w->shape_seconds = seconds > w->shape_seconds ? seconds : w->shape_seconds;
    return TESS_OK;
}

void tess_window_plan_run(tess_windows *w, const tess_window_plan *plan, const tess_window_run *run,
                          int64_t units)
{
    tess_device *device = w->settings.device;
    if (!plan->graph) {
        const tess_net_run net = {.arena = w->arena.data,
                                  .workspace = w->workspace.data,
                                  .weights = run->net->weights,
                                  .stream = run->stream,
                                  .units = units,
                                  .exchanger = run->exchanger,
                                  .exchange_user = run->exchange_user};
        tess_net_plan_execute(plan->plan, &net);
        return;
    }
    device->graphs->launch(device, plan->graph, run->stream);
    tess_stop_add(device->stop, units);
}
