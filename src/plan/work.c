#include "plan/work.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

tess_work_phase *tess_work_begin(tess_work *work, const char *verb, const char *name)
{
    tess_work_phase *phase = &work->phase[work->phases];
    work->verb = verb;
    if (work->phases < TESS_WORK_PHASES - 1)
        work->phases++;
    *phase = (tess_work_phase){.pieces = 1};
    snprintf(phase->name, sizeof phase->name, "%s", name);
    return phase;
}

void tess_work_clear(tess_work *work)
{
    for (int i = 0; i < work->phases; i++)
        tess_small_free(work->phase[i].items);
    *work = (tess_work){0};
}

static tess_work_item *item_for(tess_work_phase *phase, const tess_work_item *item)
{
    for (int i = 0; i < phase->count; i++)
        if (phase->items[i].kind == item->kind && phase->items[i].layer == item->layer &&
            strcmp(phase->items[i].op_class, item->op_class) == 0)
            return &phase->items[i];
    if (phase->count == phase->capacity) {
        const int capacity = phase->capacity ? 2 * phase->capacity : 32;
        tess_work_item *more = tess_small_realloc(phase->items, (size_t)capacity, sizeof *more);
        if (!more)
            return NULL;
        phase->items = more;
        phase->capacity = capacity;
    }
    tess_work_item *last = &phase->items[phase->count++];
    *last = *item;
    last->amount = (tess_op_amount){0};
    return last;
}

void tess_work_add(tess_work *work, tess_work_phase *phase, const tess_work_item *item)
{
    tess_work_item *sum = item_for(phase, item);
    work->failed = work->failed || !sum;
    if (!sum)
        return;
    sum->amount.runs += item->amount.runs;
    sum->amount.pixels += item->amount.pixels;
    sum->amount.flops += item->amount.flops;
    sum->amount.bytes += item->amount.bytes;
}

void tess_work_add_op(tess_work *work, tess_work_phase *phase, const tess_rates *rates, const tess_op *op,
                      bool layer, double runs)
{
    const tess_op_amount one = tess_rates_amount(rates, op);
    tess_work_item item = {.kind = TESS_WORK_OP,
                           .layer = layer,
                           .amount = {runs, runs * one.pixels, runs * one.flops, runs * one.bytes}};
    tess_op_class(op, item.op_class, sizeof item.op_class);
    tess_work_add(work, phase, &item);
}

void tess_work_add_net(tess_work *work, tess_work_phase *phase, const tess_rates *rates,
                       const tess_net_plan *plan, double runs)
{
    for (int i = 0; i < tess_net_plan_op_count(plan); i++)
        tess_work_add_op(work, phase, rates, tess_net_plan_op(plan, i), true, runs);
}

/* The classes have one rate for a pixel, so windows of several sizes count as windows of the largest. */
tess_status tess_work_add_cut(tess_work *work, tess_work_phase *phase, const tess_rates *rates,
                              const tess_bound *bound, const tess_cut_request *request,
                              const tess_cut_plan *plan, double times, tess_error *error)
{
    const tess_plan_shape shape = {.n = plan->batch,
                                   .d = plan->volume ? tess_axis_largest_window(&plan->depth) : 1,
                                   .h = tess_axis_largest_window(&plan->rows),
                                   .w = tess_axis_largest_window(&plan->cols)};
    const double all = (double)tess_axis_total_window(&plan->depth) *
                       (double)tess_axis_total_window(&plan->rows) *
                       (double)tess_axis_total_window(&plan->cols),
                 one = (double)(shape.n * shape.d * shape.h * shape.w),
                 planes = times * (double)request->planes,
                 runs = (double)plan->depth.tiles * (double)plan->rows.tiles *
                        (double)tess_ceil_div(plan->cols.tiles, plan->batch);
    tess_net_plan *net = NULL;
    TESS_TRY(tess_net_plan_create(bound, shape, &net, error));
    tess_work_add_net(work, phase, rates, net, planes * all / one);
    tess_net_plan_destroy(net);
    tess_work_item beyond = {.kind = TESS_WORK_BEYOND,
                             .amount = {.runs = planes * runs, .pixels = planes * all}};
    tess_rates_run_class(bound, beyond.op_class);
    tess_work_add(work, phase, &beyond);
    return TESS_OK;
}
