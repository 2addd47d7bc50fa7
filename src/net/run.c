/* Runs a plan: no allocation, no synchronisation. */
#include <stdio.h>

#include "base/help.h"
#include "base/stop.h"
#include "base/trace.h"
#include "net/plan_impl.h"

static void exchange(const tess_net_plan *plan, const tess_net_run *run, const tess_step *step)
{
    tess_trace *trace = plan->bound->device->counter->trace;
    const double start = tess_trace_begin(trace);
    const bool begins = step->kind == TESS_STEP_EXCHANGE;
    const tess_exchanger *by = run->exchanger;
    const tess_exchange wanted = tess_plan_exchange(plan, step, run->arena);
    if (begins) {
        tess_plan_run_copies(plan, step, &wanted, run->stream);
        by->begin(run->exchange_user, &wanted, run->stream);
    } else { /* nothing else uses the workspace meanwhile, but for what an op that waits keeps */
        tess_help *help = plan->bound->device->help;
        tess_help_lend(help, run->workspace, plan->workspace_bytes);
        by->end(run->exchange_user, &wanted, run->stream);
        tess_help_lend(help, NULL, 0);
        tess_plan_run_copies(plan, step, &wanted, run->stream);
    }
    tess_trace_end(trace, TESS_TRACE_EXCHANGE, begins ? "send rows" : "wait for rows", start);
}

/* Bytes from the first own value to the one at this row, or slice, and column. */
static int64_t place_of(const tess_net_plan *plan, const tess_tensor *tensor, int64_t row, int64_t column)
{
    return (row * tess_plan_stride(plan, tensor) + column * tensor->stride_w) *
           (int64_t)tess_dtype_size(tensor->dtype);
}

/* The rows that a step waits for by itself. */
typedef struct late_rows {
    const tess_net_plan *plan;
    const tess_net_run *run;
    tess_step arrival;
} late_rows;

static late_rows late_of(const tess_net_plan *plan, const tess_net_run *run, const tess_step *step)
{
    return (late_rows){plan, run, {.kind = TESS_STEP_ARRIVAL, .layer = step->layer, .in = {step->in[0]}}};
}

static void wait_late(void *user)
{
    const late_rows *late = user;
    exchange(late->plan, late->run, &late->arrival);
}

static void run_op(const tess_net_plan *plan, const tess_net_run *run, const tess_step *step)
{
    late_rows late = late_of(plan, run, step);
    tess_device *device = plan->bound->device;
    tess_op_buffers buffers = {.weights = (const char *)run->weights + plan->bound->weight_at[step->layer],
                               .workspace = run->workspace};
    for (int i = 0; i < step->op.inputs; i++)
        buffers.in[i] = (char *)run->arena + plan->offset[step->in[i]];
    for (int i = 0; i < step->op.outputs; i++)
        buffers.out[i] = (char *)run->arena + plan->offset[step->out[i]];
    for (int i = 0; i < step->op.inputs; i++)
        buffers.in[i] =
            (const char *)buffers.in[i] +
            place_of(plan, &step->op.in[i], i ? step->row : step->in_row, i ? step->column : step->in_column);
    buffers.out[0] = (char *)buffers.out[0] + place_of(plan, &step->op.out[0], step->row, step->column);
    buffers.out[0] = (char *)buffers.out[0] + (size_t)step->channel * tess_dtype_size(step->op.out[0].dtype);
    if (step->waits) {
        const tess_margin rows = tess_plan_late(plan, step);
        buffers.arrival = (tess_op_arrival){wait_late, &late, rows.above, rows.below};
    }
    device->ops->run(device, step->prepared, &buffers, run->stream);
}

/* Runs an op under the name of its layer, or of its kind and number. */
static void run_named(const tess_net_plan *plan, const tess_net_run *run, const tess_step *step)
{
    char number[64];
    const tess_layer *layer = tess_net_layer(plan->bound->net, step->layer);
    snprintf(number, sizeof number, "%s %d", tess_op_kind_name(layer->kind), step->layer);
    tess_trace_label(layer->name[0] ? layer->name : number);
    run_op(plan, run, step);
    tess_trace_label(NULL);
}

void tess_net_plan_execute(const tess_net_plan *plan, const tess_net_run *run)
{
    tess_device *device = plan->bound->device;
    tess_stop *stop = device->host_memory ? device->stop : NULL; /* others only queue or capture */
    double all = 0, done = 0;
    for (int i = 0; i < plan->op_count; i++)
        all += tess_op_flops(tess_net_plan_op(plan, i));
    bool stopped = false;
    for (int i = 0; i < plan->step_count; i++) {
        const tess_step *step = &plan->steps[i];
        stopped = stopped || tess_stop_poll(stop);
        if (!tess_step_computes(step))
            exchange(plan, run, step); /* also when stopped: the neighbours wait for it */
        if (stopped && step->waits) {
            late_rows late = late_of(plan, run, step);
            wait_late(&late);
        }
        if (stopped || !tess_step_computes(step))
            continue;
        const int64_t before = (int64_t)((double)run->units * (done / all));
        done += tess_op_flops(&step->op);
        const int64_t after =
            i + 1 < plan->step_count ? (int64_t)((double)run->units * (done / all)) : run->units;
        tess_stop_current(stop, after - before);
        (device->traced ? run_named : run_op)(plan, run, step);
        tess_stop_add(stop, after - before);
    }
    if (!stop)
        tess_stop_add(device->stop, run->units);
}

void tess_net_plan_run(const tess_net_plan *plan, void *arena, void *workspace, const void *weights,
                       tess_stream *stream)
{
    tess_net_plan_run_counted(plan, arena, workspace, weights, stream, 0);
}

void tess_net_plan_run_counted(const tess_net_plan *plan, void *arena, void *workspace, const void *weights,
                               tess_stream *stream, int64_t units)
{
    const tess_net_run run = {
        .arena = arena, .workspace = workspace, .weights = weights, .stream = stream, .units = units};
    tess_net_plan_execute(plan, &run);
}
