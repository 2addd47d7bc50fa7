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

/* A layer that is divided has as many positions in its output as it reads of its own: the stride is 1. */
static void add_part(tess_timetable *s, tess_stage *stage, const tess_plan_step *step,
                     const tess_rates *rates, const tess_tensor *own, bool arrived)
{
    const tess_op *op = step->op;
    const double seconds = tess_rates_op_seconds(rates, op, &s->measured);
    if (stage->op.outputs == 0) {
        stage->op = *op;
    } else {
        stage->op.out[0].d = own->d;
        stage->op.out[0].h = own->h;
        stage->op.out[0].w = own->w;
    }
    const double early = arrived ? 0 : step->waits ? step->early : 1;
    stage->edges += (1 - early) * seconds;
    stage->inner += early * seconds;
}

static void read_steps(tess_timetable *s, const tess_net_plan *plan, const tess_rates *rates)
{
    tess_stage *stage = NULL;
    int layer = -1;
    bool arrived = false;
    tess_tensor own = {0};
    for (int i = 0; i < tess_net_plan_step_count(plan); i++) {
        const tess_plan_step step = tess_net_plan_step(plan, i);
        if (step.kind == TESS_STEP_EXCHANGE) {
            stage = &s->stages[s->count++];
            layer = step.layer;
            arrived = false;
            own = step.rows;
            stage->rows = step.above > step.below ? step.above : step.below;
            stage->bytes = stage->rows * bytes_of_row(&step.rows, step.slices);
            const int columns = step.left > step.right ? step.left : step.right;
            stage->beside = columns * bytes_of_row(&step.rows, step.slices) / (double)own.w * (double)own.h;
            stage->corner = columns * stage->bytes / (double)own.w;
        } else if (step.kind == TESS_STEP_ARRIVAL) {
            arrived = true;
        } else if (!stage) {
            s->before += tess_rates_op_seconds(rates, step.op, &s->measured);
        } else if (step.layer == layer) {
            add_part(s, stage, &step, rates, &own, arrived);
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
    *s = (tess_timetable){
        .sides = shape.above + shape.below, .beside = shape.left + shape.right, .measured = true};
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
    for (int i = 0; i < s->count; i++)
        seconds += tess_stage_seconds(&s->stages[i]);
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

/* The ranks of a grid in one of its exchanges. */
typedef struct grid {
    int ranks, columns;
    const tess_links *links;
    const double *begun;
    double *crossing; /* for each node: the bytes that it sends to others */
} grid;

/* The neighbour that lies there; -1: none. */
static int neighbour(const grid *g, int rank, int down, int across)
{
    const int x = rank % g->columns + across, at = rank + down * g->columns + across;
    return x < 0 || x >= g->columns || at < 0 || at >= g->ranks || (!down && !across) ? -1 : at;
}

static double bytes_to(const tess_stage *stage, int down, int across)
{
    return down && across ? stage->corner : across ? stage->beside : stage->bytes;
}

static void add_crossing(const grid *g, int rank, const tess_stage *stage)
{
    const int per_node = g->links->per_node, node = rank / per_node;
    for (int i = 0; i < 9; i++) {
        const int down = i / 3 - 1, across = i % 3 - 1, other = neighbour(g, rank, down, across);
        if (other >= 0 && other / per_node != node)
            g->crossing[node] += bytes_to(stage, down, across);
    }
}

static double ready_in_grid(const grid *g, int rank, const tess_stage *stage)
{
    const int per_node = g->links->per_node;
    double at = g->begun[rank];
    for (int i = 0; i < 9; i++) {
        const int down = i / 3 - 1, across = i % 3 - 1, other = neighbour(g, rank, down, across);
        if (other < 0)
            continue;
        const double most = fmax(g->crossing[rank / per_node], g->crossing[other / per_node]);
        at = fmax(at,
                  fmax(g->begun[rank], g->begun[other]) +
                      tess_links_pair(g->links, g->ranks, rank, other, bytes_to(stage, down, across), most));
    }
    return at;
}

/* Of a rank in a stage; stage -1: before the first. */
static double speed_of(const tess_timetable *s, const tess_pace *pace, int rank, int stage)
{
    if (pace->of_stage && pace->stages == s->count)
        return pace->of_stage[rank * (pace->stages + 1) + stage + 1];
    return pace->of_rank ? pace->of_rank[rank] : 1;
}

static double compute_at(const tess_timetable *s, const tess_pace *pace, int rank)
{
    double seconds = s->before / speed_of(s, pace, rank, -1);
    for (int i = 0; i < s->count; i++)
        seconds += tess_stage_seconds(&s->stages[i]) / speed_of(s, pace, rank, i);
    return seconds;
}

static double end_of_stage(const tess_stage *stage, double speed, double begun, double there)
{
    return stage->after / speed + (stage->inner > 0
                                       ? fmax(begun + stage->inner / speed, there) + stage->edges / speed
                                       : fmax(begun, there) + stage->whole / speed);
}

static void run_stage(const tess_timetable *const *of_rank, const tess_pace *pace, int k, grid *g,
                      double *now, double *begun)
{
    for (int r = 0; r < g->ranks; r++)
        begun[r] = now[r];
    for (int n = 0; n < tess_links_nodes(g->links, g->ranks); n++)
        g->crossing[n] = 0;
    for (int r = 0; r < g->ranks && g->columns > 1; r++)
        add_crossing(g, r, &of_rank[r]->stages[k]);
    for (int r = 0; r < g->ranks; r++) {
        const tess_stage *stage = &of_rank[r]->stages[k];
        /* A stage whose rows came with an earlier exchange has no bytes. */
        double there = begun[r];
        if (g->columns > 1)
            there = ready_in_grid(g, r, stage);
        else if (stage->bytes > 0)
            there = ready(begun, g->ranks, r, g->links, stage->bytes);
        now[r] = end_of_stage(stage, speed_of(of_rank[r], pace, r, k), begun[r], there);
    }
}

static double sent_by(const tess_timetable *s)
{
    double sent = 0;
    for (int k = 0; k < s->count; k++)
        sent += s->sides * s->stages[k].bytes + s->beside * s->stages[k].beside +
                s->sides * s->beside * s->stages[k].corner;
    return sent;
}

tess_status tess_timetable_run(const tess_timetable *const *of_rank, tess_pace pace, int ranks, int columns,
                               const tess_links *links, tess_timetable_time *time, tess_error *error)
{
    double *now = tess_small_alloc(3 * (size_t)ranks, sizeof *now), *begun = now ? now + ranks : NULL;
    *time = (tess_timetable_time){0};
    if (!now)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the times of ranks");
    grid g = {ranks, columns, links, begun, now + 2 * ranks};
    for (int r = 0; r < ranks; r++)
        now[r] = of_rank[r]->before / speed_of(of_rank[r], &pace, r, -1);
    for (int k = 0; k < of_rank[0]->count; k++)
        run_stage(of_rank, &pace, k, &g, now, begun);
    for (int r = 0; r < ranks; r++) {
        time->seconds = fmax(time->seconds, now[r]);
        time->compute = fmax(time->compute, compute_at(of_rank[r], &pace, r));
        time->sent = fmax(time->sent, sent_by(of_rank[r]));
    }
    time->communication = fmax(0, time->seconds - time->compute);
    tess_small_free(now);
    return TESS_OK;
}
