/* Choosing tiles: the whole image when it fits; else the cut that computes the fewest pixels twice among
 * those that fit. Candidates are compared by a straight line for the arena (bytes a pixel), the best one is
 * then planned in earnest, and the line is corrected until plan and limit agree. */
#include "plan/denoise.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "plan/denoise_impl.h"

/* Kept free below the limit. On the host: code pages, stacks and tables, which the system counts too. A card's
 * driver grants what it is asked for, rounded as `granted` says, and little more. */
static size_t reserve(const tess_denoise_wish *wish)
{
    return (size_t)(wish->apart ? 1 : 4) << 20;
}

enum { MOST_CUTS = 40, MOST_BATCH = 64, TRIES = 12 };

/* Seconds are a straight line in the pixels of a window, as those of every op are: two plans give it. */
static tess_status fit_seconds(chooser *c, tess_error *error)
{
    double seconds[2], pixels[2];
    c->calibrated = true;
    for (int i = 0; i < 2; i++) {
        int64_t side = c->grid * (i ? 64 : 16);
        tess_net_plan *plan = NULL;
        TESS_TRY(tess_net_plan_create(c->bound, (tess_plan_shape){1, side, side, TESS_INFER}, &plan, error));
        seconds[i] = tess_rates_plan_seconds(c->rates, plan, &c->calibrated);
        pixels[i] = (double)(side * side);
        tess_net_plan_destroy(plan);
    }
    c->seconds_per_pixel = (seconds[1] - seconds[0]) / (pixels[1] - pixels[0]);
    c->seconds_per_run = seconds[1] - c->seconds_per_pixel * pixels[1];
    return TESS_OK;
}

/* The most windows of one size side by side: a larger batch could never be filled. */
static int64_t longest_run(const tess_axis *cols)
{
    int64_t most = 1;
    for (int64_t i = 0, run; i < cols->tiles; i += run) {
        run = tess_axis_run(cols, i, cols->tiles);
        most = tess_max_i64(most, run);
    }
    return most;
}

/* The batch that was asked for, as far as the cut can fill it; 1 until the best is looked for. */
static void set_batch(const chooser *c, tess_denoise_choice *choice)
{
    choice->batch = c->wish->batch > 0 ? tess_min_i64(c->wish->batch, longest_run(&choice->cols)) : 1;
}

static uint64_t total_bytes(const chooser *c, const tess_denoise_choice *choice)
{
    return tess_mem_total(&choice->bytes) + c->wish->others + reserve(c->wish);
}

static bool fits(const chooser *c, const tess_denoise_choice *choice)
{
    const tess_denoise_wish *w = c->wish;
    return total_bytes(c, choice) <= w->limit &&
           (!w->apart || choice->io_block + w->held_bytes <= w->host_limit);
}

static void cut(const chooser *c, int64_t tile_h, int64_t tile_w, tess_denoise_choice *choice)
{
    choice->rows = tess_axis_cut(c->padded_h, tile_h, c->halo, c->alignment);
    choice->cols = tess_axis_cut(c->padded_w, tile_w, c->halo, c->alignment);
    set_batch(c, choice);
}

/* 1, 2, 3, ... 16 pieces, then ever larger steps, up to the most that the alignment allows. */
static int64_t pieces(int index, int64_t size, int64_t alignment)
{
    double wanted = index < 16 ? index + 1 : 16 * pow(1.25, index - 15);
    return tess_min_i64((int64_t)wanted, tess_ceil_div(size, alignment));
}

/* What a way of cutting one axis means, worked out once and then combined with every way of cutting the
 * other. */
typedef struct axis_cost {
    tess_axis axis;
    double window, total; /* pixels: the largest window, and all of them */
    double io_bytes;      /* rows: the ring; columns: host scratch */
    double batch;         /* columns: windows in one run */
    bool host;            /* more rows than the host has room for */
} axis_cost;

static int cost_axes(const chooser *c, int64_t size, bool rows, axis_cost costs[MOST_CUTS])
{
    const tess_denoise_wish *w = c->wish;
    int count = 0;
    for (int i = 0; i < MOST_CUTS; i++) {
        tess_axis axis = tess_axis_split(size, pieces(i, size, c->alignment), c->halo, c->alignment);
        if (count && costs[count - 1].axis.tiles == axis.tiles)
            continue;
        axis_cost *cost = &costs[count++];
        cost->axis = axis;
        cost->window = (double)tess_axis_largest_window(&axis);
        cost->total = (double)tess_axis_total_window(&axis);
        cost->batch = w->batch > 0 ? (double)tess_min_i64(w->batch, longest_run(&axis)) : 1;
        cost->io_bytes = rows ? (double)tess_ring_bytes(&axis, w->height, w->in_row_bytes, w->out_row_bytes)
                              : (double)w->row_scratch_bytes * cost->window;
        cost->host =
            w->apart && cost->io_bytes + (double)(w->fixed_io_bytes + w->held_bytes) > (double)w->host_limit;
        if (w->apart)
            cost->io_bytes = 0; /* the stages go with the pixels */
    }
    return count;
}

/* The cut with the least computed area among those whose estimated bytes fit, or the one with the least bytes
 * of all; and the estimate. False when there is none. */
static bool best_cut(const chooser *c, double fixed, bool by_bytes, tess_denoise_choice *choice,
                     double *estimate)
{
    const double limit =
        by_bytes ? INFINITY : (double)c->wish->limit - (double)(reserve(c->wish) + c->wish->others);
    double least = INFINITY;
    for (int r = 0; r < c->row_count; r++)
        for (int k = 0; k < c->col_count; k++) {
            const axis_cost *rows = &c->row_costs[r], *cols = &c->col_costs[k];
            double bytes = fixed + rows->io_bytes + cols->io_bytes +
                           c->bytes_per_pixel * rows->window * cols->window * cols->batch;
            double score = by_bytes ? bytes : rows->total * cols->total;
            if (bytes <= limit && !rows->host && score < least) {
                least = score;
                *estimate = bytes;
                choice->rows = rows->axis;
                choice->cols = cols->axis;
            }
        }
    set_batch(c, choice);
    return isfinite(least);
}

static tess_status over_limit(const chooser *c, const tess_denoise_choice *choice, const char *advice,
                              tess_error *error)
{
    const double mib = 1 << 20;
    const uint64_t others = c->wish->others;
    char limit[64];
    if (c->wish->apart && choice->io_block + c->wish->held_bytes > c->wish->host_limit)
        return tess_fail(error, TESS_OVER_LIMIT,
                         "%.0fM of rows do not fit the %.0fM that the host can give; use a smaller --tile",
                         (double)(choice->io_block + c->wish->held_bytes) / mib,
                         (double)c->wish->host_limit / mib);
    if (c->wish->asked_limit)
        snprintf(limit, sizeof limit, "--memory %.0fM is too little", (double)c->wish->asked_limit / mib);
    else
        snprintf(limit, sizeof limit, "%.0fM of free memory are too little", (double)c->wish->limit / mib);
    return tess_fail(error, TESS_OVER_LIMIT,
                     "%s: %.0fM of weights, %.0fM of activations, %.0fM of "
                     "workspace, %.0fM %s "
                     "and %.0fM in reserve make %.0fM; %s",
                     limit, (double)choice->bytes.by[TESS_MEM_WEIGHTS] / mib,
                     (double)choice->bytes.by[TESS_MEM_ACTIVATIONS] / mib,
                     (double)choice->bytes.by[TESS_MEM_WORKSPACE] / mib,
                     (double)(choice->bytes.by[TESS_MEM_IO] + others) / mib,
                     others ? "of images and measurements" : "for rows", (double)reserve(c->wish) / mib,
                     ceil((double)total_bytes(c, choice) / mib), advice);
}

static tess_status choose_tile(chooser *c, tess_denoise_choice *choice, tess_error *error)
{
    const tess_denoise_wish *w = c->wish;
    if (w->tile_height != 0) {
        bool whole = w->tile_height == TESS_TILE_WHOLE;
        cut(c, whole ? 0 : w->tile_height, whole ? 0 : w->tile_width, choice);
        snprintf(choice->reason, sizeof choice->reason, "tile as asked");
        return tess_denoise_measure(c, choice, error);
    }
    cut(c, 0, 0, choice);
    TESS_TRY(tess_denoise_measure(c, choice, error));
    if (fits(c, choice)) {
        snprintf(choice->reason, sizeof choice->reason, "the whole image fits the limit of %.0f MiB",
                 (double)w->limit / (1 << 20));
        return TESS_OK;
    }
    /* Workspace depends on the channels, and on a device with several engines on the size class a little. */
    double growing = (double)choice->arena_bytes, estimate = 0;
    double fixed = (double)(choice->bytes.by[TESS_MEM_WEIGHTS] + choice->bytes.by[TESS_MEM_WORKSPACE]);
    if (w->apart)
        growing += (double)(choice->in_stage + choice->out_stage);
    else
        fixed += (double)(w->held_bytes + w->fixed_io_bytes);
    c->bytes_per_pixel = growing / ((double)c->padded_h * (double)c->padded_w);
    axis_cost row_costs[MOST_CUTS], col_costs[MOST_CUTS];
    c->row_costs = row_costs;
    c->col_costs = col_costs;
    c->row_count = cost_axes(c, c->padded_h, true, row_costs);
    c->col_count = cost_axes(c, c->padded_w, false, col_costs);
    for (int attempt = 0; attempt < TRIES && best_cut(c, fixed, false, choice, &estimate); attempt++) {
        TESS_TRY(tess_denoise_measure(c, choice, error));
        if (fits(c, choice)) {
            double area =
                (double)tess_axis_total_window(&choice->rows) * (double)tess_axis_total_window(&choice->cols);
            snprintf(choice->reason, sizeof choice->reason,
                     "%lld x %lld tiles fit the limit of %.0f MiB; halos cost %.0f %% more pixels",
                     (long long)choice->rows.tiles, (long long)choice->cols.tiles,
                     (double)w->limit / (1 << 20),
                     100 * (area / ((double)c->padded_h * (double)c->padded_w) - 1));
            return TESS_OK;
        }
        /* The line is raised to what was measured, so that this cut is not proposed again. */
        const double pixels = (double)tess_axis_largest_window(&choice->rows) *
                              (double)tess_axis_largest_window(&choice->cols) * (double)choice->batch;
        const double missing = fmax((double)tess_mem_total(&choice->bytes) - estimate, 0);
        c->bytes_per_pixel = 1.001 * (c->bytes_per_pixel + missing / pixels);
    }
    best_cut(c, fixed, true, choice, &estimate);
    TESS_TRY(tess_denoise_measure(c, choice, error));
    return over_limit(c, choice, "give at least that, a smaller --halo or --batch, or a smaller model",
                      error);
}

/* Small windows leave the device idle or repeat work on the weights; a batch shares it. The smallest batch
 * within 1 % of the best that fits. */
static tess_status choose_batch(const chooser *c, tess_denoise_choice *choice, tess_error *error)
{
    const int64_t most = tess_min_i64(longest_run(&choice->cols), MOST_BATCH);
    tess_denoise_choice best = *choice;
    for (int64_t batch = 2; batch <= most; batch *= 2) {
        tess_denoise_choice trial = *choice;
        trial.batch = batch;
        TESS_TRY(tess_denoise_measure(c, &trial, error));
        if (!fits(c, &trial))
            break;
        if (trial.seconds < 0.99 * best.seconds)
            best = trial;
    }
    *choice = best;
    return TESS_OK;
}

tess_status tess_denoise_choose(const tess_bound *bound, const tess_model *model, const tess_rates *rates,
                                const tess_denoise_wish *wish, tess_denoise_choice *choice, tess_error *error)
{
    chooser c = {.bound = bound, .rates = rates, .wish = wish};
    *choice = (tess_denoise_choice){.batch = 1, .depth = tess_axis_cut(1, 0, 0, 1)};
    c.grid = tess_net_grid(model->net);
    c.alignment = tess_bound_alignment(bound);
    c.padded_h = tess_round_up(wish->height, c.grid);
    c.padded_w = tess_round_up(wish->width, c.grid);
    int64_t halo = wish->halo == TESS_HALO_EXACT  ? tess_bound_reach(bound)
                   : wish->halo == TESS_HALO_AUTO ? model->halo
                                                  : wish->halo;
    c.halo = tess_round_up(halo, c.alignment);
    TESS_TRY(fit_seconds(&c, error));
    TESS_TRY(choose_tile(&c, choice, error));
    if (!fits(&c, choice))
        return over_limit(&c, choice, "give at least that, or --tile auto --batch auto", error);
    if (wish->batch == 0)
        TESS_TRY(choose_batch(&c, choice, error));
    choice->halo = choice->rows.tiles * choice->cols.tiles > 1 ? c.halo : 0;
    return TESS_OK;
}
