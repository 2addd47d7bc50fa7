#include "plan/ranks/timetable.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

/* Or of a slice. */
static double bytes_of_row(const tess_tensor *t, bool slice)
{
    return (double)t->n * (double)(slice ? t->h : t->d) * (double)t->w * (double)t->c *
           (double)tess_dtype_size(t->dtype);
}

/* The part of a divided layer is added to the whole: the rows of the parts together are the layer's. */
static void add_part(tess_timetable *s, tess_stage *stage, const tess_op *op, const tess_rates *rates,
                     bool slices, bool arrived)
{
    const double seconds = tess_rates_op_seconds(rates, op, &s->measured);
    if (stage->op.outputs == 0)
        stage->op = *op;
    else if (slices)
        stage->op.out[0].d += op->out[0].d;
    else
        stage->op.out[0].h += op->out[0].h;
    if (arrived)
        stage->edges += seconds;
    else
        stage->inner += seconds;
}

static void read_steps(tess_timetable *s, const tess_net_plan *plan, const tess_rates *rates)
{
    tess_stage *stage = NULL;
    int layer = -1;
    bool arrived = false, slices = false;
    for (int i = 0; i < tess_net_plan_step_count(plan); i++) {
        const tess_plan_step step = tess_net_plan_step(plan, i);
        if (step.kind == TESS_STEP_EXCHANGE) {
            stage = &s->stages[s->count++];
            layer = step.layer;
            arrived = false;
            slices = step.slices;
            stage->rows = step.above > step.below ? step.above : step.below;
            stage->bytes = stage->rows * bytes_of_row(&step.rows, step.slices);
        } else if (step.kind == TESS_STEP_ARRIVAL) {
            arrived = true;
        } else if (!stage) {
            s->before += tess_rates_op_seconds(rates, step.op, &s->measured);
        } else if (step.layer == layer) {
            add_part(s, stage, step.op, rates, slices, arrived);
        } else {
            stage->after += tess_rates_op_seconds(rates, step.op, &s->measured);
            stage->ends_level = stage->ends_level || step.op->out[0].h != stage->op.out[0].h;
        }
    }
    for (int i = 0; i < s->count; i++)
        s->stages[i].whole = tess_rates_op_seconds(rates, &s->stages[i].op, &s->measured);
}

tess_status tess_timetable_make(const tess_bound *bound, const tess_rates *rates, tess_plan_shape shape,
                                tess_timetable *s, tess_error *error)
{
    tess_net_plan *plan = NULL;
    *s = (tess_timetable){.sides = shape.above + shape.below, .measured = true};
    TESS_TRY(tess_net_plan_create(bound, shape, &plan, error));
    const size_t most = (size_t)tess_net_plan_step_count(plan) + 1;
    s->stages = tess_small_alloc(most, sizeof *s->stages);
    tess_status status = TESS_OK;
    if (!s->stages)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for a timetable");
    if (status == TESS_OK) {
        const tess_run_cost beyond = tess_rates_run_cost(rates, bound);
        s->before = beyond.overhead + beyond.per_pixel * (double)(shape.n * shape.h * shape.w) *
                                          (double)tess_max_i64(shape.d, 1);
        read_steps(s, plan, rates);
        s->arena_bytes = (double)tess_net_plan_arena_bytes(plan);
        s->workspace_bytes = (double)tess_net_plan_workspace_bytes(plan);
        s->weight_bytes = (double)tess_bound_weight_bytes(bound);
    }
    tess_net_plan_destroy(plan);
    return status;
}

void tess_timetable_clear(tess_timetable *s)
{
    tess_small_free(s->stages);
    *s = (tess_timetable){0};
}

double tess_timetable_compute(const tess_timetable *s)
{
    double seconds = s->before;
    for (int i = 0; i < s->count; i++) {
        const tess_stage *stage = &s->stages[i];
        seconds += (stage->inner > 0 ? stage->inner + stage->edges : stage->whole) + stage->after;
    }
    return seconds;
}

/* When all rows of this stage are there, given when each rank began to exchange them. */
static double ready(const double *begun, int ranks, int rank, const tess_links *links, double bytes)
{
    double at = begun[rank];
    for (int lower = rank - 1; lower <= rank; lower++)
        if (lower >= 0 && lower + 1 < ranks)
            at = fmax(at,
                      fmax(begun[lower], begun[lower + 1]) + tess_links_exchange(links, ranks, lower, bytes));
    return at;
}

static double end_of_stage(const tess_stage *stage, double begun, double there)
{
    return stage->after + (stage->inner > 0 ? fmax(begun + stage->inner, there) + stage->edges
                                            : fmax(begun, there) + stage->whole);
}

tess_status tess_timetable_run(const tess_timetable *const *of_rank, int ranks, const tess_links *links,
                               tess_timetable_time *time, tess_error *error)
{
    double *now = tess_small_alloc(2 * (size_t)ranks, sizeof *now), *begun = now ? now + ranks : NULL;
    *time = (tess_timetable_time){0};
    if (!now)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the times of ranks");
    for (int r = 0; r < ranks; r++)
        now[r] = of_rank[r]->before;
    for (int k = 0; k < of_rank[0]->count; k++) {
        for (int r = 0; r < ranks; r++)
            begun[r] = now[r];
        for (int r = 0; r < ranks; r++) {
            const tess_stage *stage = &of_rank[r]->stages[k];
            /* A stage whose rows came with an earlier exchange has no bytes. */
            const double there = stage->bytes > 0 ? ready(begun, ranks, r, links, stage->bytes) : begun[r];
            now[r] = end_of_stage(stage, begun[r], there);
        }
    }
    for (int r = 0; r < ranks; r++) {
        double sent = 0;
        for (int k = 0; k < of_rank[r]->count; k++)
            sent += of_rank[r]->sides * of_rank[r]->stages[k].bytes;
        time->seconds = fmax(time->seconds, now[r]);
        time->compute = fmax(time->compute, tess_timetable_compute(of_rank[r]));
        time->sent = fmax(time->sent, sent);
    }
    time->communication = fmax(0, time->seconds - time->compute);
    tess_small_free(now);
    return TESS_OK;
}
