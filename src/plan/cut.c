/* Chooses the cut. Nothing is cut when the whole image fits; otherwise the cut that fits and computes the
 * fewest pixels twice is chosen. Candidates are compared by a straight line for the arena (bytes per pixel);
 * the best one is then planned exactly, and the line is corrected until plan and limit agree. When that finds
 * nothing, the cut that needs the least memory is the last candidate. So a limit is refused exactly when it is
 * less than that cut's bytes, which the error message gives. */
#include "plan/cut.h"

#include <math.h>

#include "base/checked.h"
#include "plan/cut_impl.h"

enum {
    MOST_BATCH = 64,
    TRIES = 12,
    MEASURED = 24 /* cuts with the lowest estimates, all of which are measured */
};

static const int64_t whole[TESS_SPATIAL] = {0};

/* Seconds are linear in the pixels of a window, as for every op: two plans give the line. */
static tess_status fit_seconds(tess_cutter *c, tess_error *error)
{
    const bool volume = c->model->volume;
    const int64_t depth = volume ? 2 * c->alignment[TESS_DEPTH] : 1,
                  side = volume ? 4 * c->alignment[TESS_HEIGHT] : 16 * c->grid[TESS_HEIGHT];
    double seconds[2], pixels[2];
    c->calibrated = true;
    for (int i = 0; i < 2; i++) {
        const int64_t length = i ? 4 * side : side;
        const tess_plan_shape shape = {.n = 1, .d = depth, .h = length, .w = length};
        tess_net_plan *plan = NULL;
        TESS_TRY(tess_net_plan_create(c->bound, shape, &plan, error));
        seconds[i] = tess_rates_plan_seconds(c->rates, plan, &c->calibrated);
        pixels[i] = (double)(depth * length * length);
        tess_net_plan_destroy(plan);
    }
    c->seconds_per_pixel = (seconds[1] - seconds[0]) / (pixels[1] - pixels[0]);
    c->beyond_ops = tess_rates_run_cost(c->rates, c->bound);
    c->seconds_per_run = seconds[1] - c->seconds_per_pixel * pixels[1] + c->beyond_ops.overhead;
    c->seconds_per_pixel += c->beyond_ops.per_pixel;
    return TESS_OK;
}

/* Fits the line for bytes to what the whole image needs. The workspace of a 2-D network depends on its channels
 * and, on a device with several engines, a little on the size class. That of a 3-D network also grows with the
 * window: the part that the smallest window needs is the constant. */
static tess_status fit_line(tess_cutter *c, const tess_cut_plan *uncut, tess_error *error)
{
    const tess_cut_request *r = c->request;
    uint64_t workspace = uncut->bytes.by[TESS_MEM_WORKSPACE];
    double growing = (double)uncut->arena_bytes;
    if (c->model->volume) {
        tess_cut_plan smallest = *uncut;
        tess_cut_walk walk = {-INFINITY, -1};
        c->fixed_bytes = 0;
        c->bytes_per_pixel = 1;
        (void)tess_cut_next(c, &walk, &smallest);
        TESS_TRY(tess_cut_measure(c, &smallest, error));
        growing += (double)workspace - (double)smallest.bytes.by[TESS_MEM_WORKSPACE];
        workspace = smallest.bytes.by[TESS_MEM_WORKSPACE];
    }
    c->fixed_bytes = (double)(uncut->bytes.by[TESS_MEM_WEIGHTS] + workspace);
    if (r->separate_memory)
        growing += (double)(uncut->in_stage + uncut->out_stage);
    else
        c->fixed_bytes += (double)(r->held_bytes + r->fixed_io_bytes);
    c->bytes_per_pixel = growing / (tess_cut_pixels(uncut, tess_axis_largest_window) * (double)uncut->batch);
    return TESS_OK;
}

/* Finds the best cut that fits, if the line leads to one. */
static tess_status choose_by_line(tess_cutter *c, tess_cut_plan *plan, bool *found, tess_error *error)
{
    const tess_cut_request *r = c->request;
    const double first = c->bytes_per_pixel,
                 most = (double)r->limit -
                        (double)(tess_cut_reserve(r->separate_memory) + r->others + r->other_weights);
    double estimate = 0;
    *found = false;
    for (int i = 0; i < TRIES && !*found && tess_cut_best(c, most, plan, &estimate); i++) {
        TESS_TRY(tess_cut_measure(c, plan, error));
        *found = tess_cut_fits(r, plan);
        /* Raise the line to the measured bytes, so that this cut is not proposed again. */
        const double pixels = tess_cut_pixels(plan, tess_axis_largest_window) * (double)plan->batch;
        const double missing = fmax((double)tess_mem_total(&plan->bytes) - estimate, 0);
        c->bytes_per_pixel = 1.001 * (c->bytes_per_pixel + missing / pixels);
    }
    c->bytes_per_pixel = first;
    return TESS_OK;
}

/* Finds the cut that needs the fewest bytes, as measured. */
static tess_status choose_least(const tess_cutter *c, tess_cut_plan *plan, tess_error *error)
{
    tess_cut_plan trial = *plan;
    tess_cut_walk walk = {-INFINITY, -1};
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < MEASURED && tess_cut_next(c, &walk, &trial); i++) {
        TESS_TRY(tess_cut_measure(c, &trial, error));
        if (tess_cut_total(c->request, &trial) < least) {
            least = tess_cut_total(c->request, &trial);
            *plan = trial;
        }
    }
    return TESS_OK;
}

static tess_status choose_tile(tess_cutter *c, tess_cut_plan *plan, tess_error *error)
{
    const tess_cut_request *r = c->request;
    const int64_t asked = r->tile[TESS_HEIGHT];
    tess_cut_by_tile(c, asked > 0 ? r->tile : whole, plan);
    TESS_TRY(tess_cut_measure(c, plan, error));
    if (asked != 0) {
        tess_cut_say_asked(c, plan);
        return TESS_OK;
    }
    if (!r->least && tess_cut_fits(r, plan)) {
        tess_cut_say_whole(c, plan);
        return TESS_OK;
    }
    bool found = false;
    tess_cut_list(c);
    TESS_TRY(fit_line(c, plan, error));
    if (!r->least)
        TESS_TRY(choose_by_line(c, plan, &found, error));
    if (!found)
        TESS_TRY(choose_least(c, plan, error));
    tess_cut_say_chosen(c, plan);
    return TESS_OK;
}

/* Small windows leave the device idle or repeat work on the weights, which a batch shares. Chooses the smallest
 * batch within 1 % of the best that fits. */
static tess_status choose_batch(const tess_cutter *c, tess_cut_plan *plan, tess_error *error)
{
    const int64_t most = tess_min_i64(tess_cut_longest_run(&plan->cols), MOST_BATCH);
    tess_cut_plan best = *plan;
    for (int64_t batch = 2; batch <= most; batch *= 2) {
        tess_cut_plan trial = *plan;
        trial.batch = batch;
        TESS_TRY(tess_cut_measure(c, &trial, error));
        if (!tess_cut_fits(c->request, &trial))
            break;
        if (trial.seconds < 0.99 * best.seconds)
            best = trial;
    }
    *plan = best;
    return TESS_OK;
}

static int64_t halo_of(const tess_axis *axis)
{
    return axis->tiles > 1 ? axis->halo : 0;
}

static tess_cutter cutter_for(const tess_bound *bound, const tess_model_net *model, const tess_rates *rates,
                              const tess_cut_request *request)
{
    tess_cutter c = {.bound = bound, .model = model, .rates = rates, .request = request};
    for (int i = 0; i < TESS_SPATIAL; i++) {
        const bool depth = i == TESS_DEPTH;
        c.grid[i] = tess_net_grid(model->net, i);
        c.alignment[i] = depth ? c.grid[i] : tess_bound_alignment(bound);
        c.reach[i] = depth ? tess_bound_reach_depth(bound) : tess_bound_reach(bound);
        c.padded[i] = tess_round_up(request->size[i], c.grid[i]);
    }
    if (tess_level_rows_given(&request->levels)) /* the image is padded, not the strip */
        c.padded[TESS_HEIGHT] = request->levels.rows[0];
    return c;
}

/* Refuses tiles that the user gave when no tile can be exact and the halo is to be exact. */
static tess_status check_asked(const tess_cutter *c, tess_error *error)
{
    for (int i = 0; i < TESS_SPATIAL; i++) {
        const int64_t tile = c->request->tile[i];
        if (tess_cut_never(c, i) && tile > 0 && tile < c->padded[i])
            return tess_fail(
                error, TESS_BAD_OPTION,
                "the network looks at the whole image, so no tile is exact; use `tile` whole, or "
                "give `halo` a number of pixels");
    }
    return TESS_OK;
}

tess_status tess_cut_choose(const tess_bound *bound, const tess_model_net *model, const tess_rates *rates,
                            const tess_cut_request *request, tess_cut_plan *plan, tess_error *error)
{
    tess_cutter c = cutter_for(bound, model, rates, request);
    *plan = (tess_cut_plan){.batch = 1,
                            .above = request->above,
                            .below = request->below,
                            .left = request->left,
                            .right = request->right,
                            .slices = request->slices,
                            .levels = request->levels,
                            .volume = model->volume};
    TESS_TRY(check_asked(&c, error));
    TESS_TRY(fit_seconds(&c, error));
    TESS_TRY(choose_tile(&c, plan, error));
    if (!request->least && !tess_cut_fits(request, plan))
        return tess_cut_refuse(request, plan, error);
    if (request->batch == 0 && !request->least)
        TESS_TRY(choose_batch(&c, plan, error));
    plan->halo = tess_max_i64(halo_of(&plan->rows), halo_of(&plan->cols));
    plan->halo_depth = halo_of(&plan->depth);
    return TESS_OK;
}
