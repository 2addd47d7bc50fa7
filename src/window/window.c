/* Allocates the blocks and runs the loop over batches of windows. */
#include "window/window.h"

#include "base/stop.h"
#include "base/trace.h"

#include "window/sample_ops.h"
#include "window/window_impl.h"

static tess_status create_parts(tess_windows *w, tess_error *error)
{
    tess_device *device = w->settings.device;
    w->plans = tess_small_alloc((size_t)w->settings.keep, sizeof *w->plans);
    w->sample_ops = tess_sample_ops_create(device);
    if (!w->plans || !w->sample_ops)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the plans of %d windows", w->settings.keep);
    return w->settings.graphs ? device->streams->create(device, &w->capture, error) : TESS_OK;
}

tess_status tess_windows_create(const tess_windows_settings *settings, tess_windows **out, tess_error *error)
{
    *out = NULL;
    tess_windows *w = tess_small_alloc(1, sizeof *w);
    if (!w)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to run a network over windows");
    w->settings = *settings;
    w->settings.graphs = settings->graphs && settings->device->graphs;
    const tess_status status = create_parts(w, error);
    if (status != TESS_OK) {
        tess_windows_destroy(w);
        return status;
    }
    *out = w;
    return TESS_OK;
}

void tess_windows_destroy(tess_windows *w)
{
    if (!w)
        return;
    tess_window_plans_clear(w);
    tess_sample_ops_destroy(w->sample_ops);
    if (w->capture)
        w->settings.device->streams->destroy(w->settings.device, w->capture);
    w->settings.device->memory->free(w->settings.device, &w->workspace);
    w->settings.device->memory->free(w->settings.device, &w->arena);
    tess_small_free(w->plans);
    tess_small_free(w);
}

void tess_windows_free(tess_windows *w)
{
    tess_window_plans_drop_graphs(w);
    w->settings.device->memory->free(w->settings.device, &w->arena);
    w->settings.device->memory->free(w->settings.device, &w->workspace);
}

tess_status tess_windows_alloc(tess_windows *w, size_t arena_bytes, size_t workspace_bytes, tess_error *error)
{
    tess_device *device = w->settings.device;
    tess_windows_free(w);
    if (arena_bytes)
        TESS_TRY(device->memory->alloc(device, &w->arena, TESS_MEM_ACTIVATIONS, arena_bytes, error));
    if (workspace_bytes)
        TESS_TRY(device->memory->alloc(device, &w->workspace, TESS_MEM_WORKSPACE, workspace_bytes, error));
    return TESS_OK;
}

bool tess_windows_holds(const tess_windows *w, size_t arena_bytes, size_t workspace_bytes)
{
    tess_device *device = w->settings.device;
    return w->arena.bytes == device->memory->granted(device, arena_bytes) &&
           w->workspace.bytes == device->memory->granted(device, workspace_bytes);
}

static void grow(size_t *most, size_t bytes)
{
    *most = bytes > *most ? bytes : *most;
}

static tess_status add_needs(const tess_net_plan *plan, tess_windows_needs *needs, tess_error *error)
{
    size_t at, input, output;
    const tess_tensor in = tess_net_plan_input(plan, &at), out = tess_net_plan_output(plan, &at);
    if (!tess_tensor_bytes(&in, &input) || !tess_tensor_bytes(&out, &output))
        return tess_fail(error, TESS_BAD_OPTION, "the image is too large to be planned");
    grow(&needs->arena, tess_net_plan_arena_bytes(plan));
    grow(&needs->workspace, tess_net_plan_workspace_bytes(plan));
    grow(&needs->input, input);
    grow(&needs->output, output);
    for (int i = 0; i < tess_net_plan_op_count(plan); i++)
        needs->operations += tess_op_flops(tess_net_plan_op(plan, i));
    return TESS_OK;
}

tess_status tess_windows_needed(tess_windows *w, const tess_bound *bound, const tess_cut *cut,
                                tess_windows_needs *needs, tess_error *error)
{
    *needs = (tess_windows_needs){.arena = 0};
    tess_window_batch batch;
    for (bool more = tess_batch_first(cut, TESS_ALL_STRIPS, &batch); more;
         more = tess_batch_next(cut, TESS_ALL_STRIPS, &batch)) {
        tess_window_plan *plan;
        TESS_TRY(tess_window_plan_for(w, bound, tess_batch_shape(&batch), 0, NULL, &plan, error));
        TESS_TRY(add_needs(plan->plan, needs, error));
    }
    return TESS_OK;
}

tess_status tess_windows_prepare(tess_windows *w, const tess_window_net *net, const tess_cut *cut,
                                 tess_error *error)
{
    tess_window_batch batch;
    for (bool more = tess_batch_first(cut, TESS_ALL_STRIPS, &batch); more;
         more = tess_batch_next(cut, TESS_ALL_STRIPS, &batch)) {
        tess_window_plan *plan;
        TESS_TRY(tess_window_plan_for(w, net->bound, tess_batch_shape(&batch), 0, NULL, &plan, error));
        TESS_TRY(tess_window_plan_prepare(w, plan, net->weights, error));
    }
    return TESS_OK;
}

/* Runs between begin and end. With neighbours, the network also runs after a failure: they wait for its exchanges. */
static tess_status run_planes(tess_windows *w, const tess_window_run *run, const tess_window_batch *batch,
                              tess_error *error)
{
    tess_device *device = w->settings.device;
    const tess_window_net *net = run->net;
    const tess_mover *mover = run->mover;
    const int64_t pixels = tess_batch_pixels(batch, run->size);
    tess_window_plan *plan;
    TESS_TRY(tess_window_plan_for(w, net->bound, tess_batch_shape(batch), mover->under_way, run->stream,
                                  &plan, error));
    TESS_TRY(tess_window_plan_prepare(w, plan, net->weights, error));
    size_t in_at, out_at;
    tess_window_end in = {.tensor = tess_net_plan_input(plan->plan, &in_at)},
                    out = {.tensor = tess_net_plan_output(plan->plan, &out_at)};
    in.data = (char *)w->arena.data + in_at;
    out.data = (char *)w->arena.data + out_at;
    tess_status status = TESS_OK;
    for (int64_t plane = 0; plane < net->planes && (status == TESS_OK || run->exchanger); plane++) {
        if (status == TESS_OK)
            status = mover->gather(run->user, batch, plane, &in, error);
        if (status != TESS_OK && !run->exchanger)
            break;
        tess_window_plan_run(w, plan, run, pixels * (plane + 1) / net->planes - pixels * plane / net->planes);
        if (mover->wait && status == TESS_OK)
            status = device->streams->sync(device, run->stream, error);
        if (status == TESS_OK)
            status = mover->scatter(run->user, batch, plane, &out, error);
    }
    return status;
}

static tess_status run_batch(tess_windows *w, const tess_window_run *run, const tess_window_batch *batch,
                             tess_error *error)
{
    const tess_mover *mover = run->mover;
    if (mover->begin)
        TESS_TRY(mover->begin(run->user, batch, error));
    tess_trace *trace = w->settings.device->counter->trace;
    const double start = tess_trace_begin(trace);
    const tess_status status = run_planes(w, run, batch, error);
    tess_trace_end(trace, TESS_TRACE_BATCH, "batch of windows", start);
    if (mover->end)
        mover->end(run->user, batch, status);
    return status;
}

tess_status tess_windows_run(tess_windows *w, const tess_window_run *run, tess_error *error)
{
    tess_window_batch batch;
    for (bool more = tess_batch_first(run->cut, run->strip, &batch); more;
         more = tess_batch_next(run->cut, run->strip, &batch)) {
        if (!run->exchanger)
            TESS_TRY(tess_stop_check(w->settings.device->stop, error));
        TESS_TRY(run_batch(w, run, &batch, error));
    }
    return TESS_OK;
}
