/* As denoise.c does for images: candidates are compared by a straight line for the arena (bytes a voxel), the best one
 * is planned in earnest, and the line is corrected until plan and limit agree. A window that is as large as the device
 * holds leaves nothing to gain from batches. */
#include "plan/volume.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "plan/limit.h"

enum { MOST_CUTS = 40, TRIES = 12 };

static const double MIB = 1 << 20;

typedef struct chooser {
    const tess_bound *bound;
    const tess_rates *rates;
    const tess_volume_wish *wish;
    int64_t padded[TESS_SPATIAL], alignment[TESS_SPATIAL], halo[TESS_SPATIAL];
    double seconds_per_run, seconds_per_voxel;
    bool calibrated;
} chooser;

/* A way of cutting one axis. */
typedef struct axis_cost {
    tess_axis axis;
    double window, total; /* voxels: the largest window, and all of them */
} axis_cost;

typedef struct candidates {
    axis_cost list[TESS_SPATIAL][MOST_CUTS];
    int count[TESS_SPATIAL];
} candidates;

static uint64_t reserve(const chooser *c)
{
    return tess_denoise_reserve(c->wish->apart);
}

static uint64_t total_bytes(const chooser *c, const tess_denoise_choice *choice)
{
    return tess_mem_total(&choice->bytes) + c->wish->others + reserve(c);
}

static void set_axes(tess_denoise_choice *choice, const tess_axis axes[TESS_SPATIAL])
{
    choice->depth = axes[TESS_DEPTH];
    choice->rows = axes[TESS_HEIGHT];
    choice->cols = axes[TESS_WIDTH];
}

static double windows_of(const tess_denoise_choice *choice, int64_t (*of)(const tess_axis *))
{
    return (double)of(&choice->depth) * (double)of(&choice->rows) * (double)of(&choice->cols);
}

static double voxels(const chooser *c)
{
    return (double)c->padded[TESS_DEPTH] * (double)c->padded[TESS_HEIGHT] * (double)c->padded[TESS_WIDTH];
}

static tess_status fit_seconds(chooser *c, tess_error *error)
{
    double seconds[2], count[2];
    c->calibrated = true;
    for (int i = 0; i < 2; i++) {
        const int64_t depth = 2 * c->alignment[TESS_DEPTH], side = c->alignment[TESS_HEIGHT] * (i ? 16 : 4);
        tess_net_plan *plan = NULL;
        TESS_TRY(tess_net_plan_create(c->bound, (tess_plan_shape){1, side, side, TESS_INFER, depth}, &plan,
                                      error));
        seconds[i] = tess_rates_plan_seconds(c->rates, plan, &c->calibrated);
        count[i] = (double)(depth * side * side);
        tess_net_plan_destroy(plan);
    }
    c->seconds_per_voxel = (seconds[1] - seconds[0]) / (count[1] - count[0]);
    c->seconds_per_run =
        seconds[1] - c->seconds_per_voxel * count[1] + tess_rates_run_overhead(c->rates, c->bound);
    return TESS_OK;
}

/* All bytes of a cut, exactly, and its seconds. Arena and workspace grow with the window. */
static tess_status measure(const chooser *c, tess_denoise_choice *choice, tess_error *error)
{
    tess_device *device = tess_rates_device(c->rates);
    const tess_plan_shape shape = {1, tess_axis_largest_window(&choice->rows),
                                   tess_axis_largest_window(&choice->cols), TESS_INFER,
                                   tess_axis_largest_window(&choice->depth)};
    tess_net_plan *plan = NULL;
    TESS_TRY(tess_net_plan_create(c->bound, shape, &plan, error));
    choice->arena_bytes = tess_net_plan_arena_bytes(plan);
    choice->workspace_bytes = tess_net_plan_workspace_bytes(plan);
    tess_net_plan_destroy(plan);
    choice->bytes.by[TESS_MEM_WEIGHTS] = device->granted(device, tess_bound_weight_bytes(c->bound));
    choice->bytes.by[TESS_MEM_ACTIVATIONS] = device->granted(device, choice->arena_bytes);
    choice->bytes.by[TESS_MEM_WORKSPACE] = device->granted(device, choice->workspace_bytes);
    const double runs = (double)(choice->depth.tiles * choice->rows.tiles * choice->cols.tiles);
    choice->seconds =
        runs * c->seconds_per_run + windows_of(choice, tess_axis_total_window) * c->seconds_per_voxel;
    choice->calibrated = c->calibrated;
    return TESS_OK;
}

static void cut_axis(const chooser *c, int axis, candidates *all)
{
    const int64_t size = c->padded[axis], alignment = c->alignment[axis];
    all->count[axis] = 0;
    for (int i = 0; i < MOST_CUTS; i++) {
        /* 1, 2, 3, ... 16 pieces, then ever larger steps. */
        const double wanted = i < 16 ? i + 1 : 16 * pow(1.25, i - 15);
        const int64_t pieces = tess_min_i64((int64_t)wanted, tess_ceil_div(size, alignment));
        const tess_axis cut = tess_axis_split(size, pieces, c->halo[axis], alignment);
        axis_cost *list = all->list[axis];
        int *count = &all->count[axis];
        if (*count && list[*count - 1].axis.tiles == cut.tiles)
            continue;
        list[(*count)++] =
            (axis_cost){cut, (double)tess_axis_largest_window(&cut), (double)tess_axis_total_window(&cut)};
    }
}

/* The cut with the fewest computed voxels whose largest window has at most `most` of them, or with INFINITY the one
 * with the smallest window of all. Of equal ones the first: depth is cut rather than rows, and rows rather than columns. */
static bool best_cut(const candidates *all, double most, tess_denoise_choice *choice, double *window)
{
    const bool smallest = isinf(most);
    double least = INFINITY;
    for (int w = 0; w < all->count[TESS_WIDTH]; w++)
        for (int h = 0; h < all->count[TESS_HEIGHT]; h++)
            for (int d = 0; d < all->count[TESS_DEPTH]; d++) {
                const axis_cost *depth = &all->list[TESS_DEPTH][d], *rows = &all->list[TESS_HEIGHT][h],
                                *cols = &all->list[TESS_WIDTH][w];
                const double largest = depth->window * rows->window * cols->window,
                             computed = depth->total * rows->total * cols->total,
                             score = smallest ? largest : computed;
                if (largest > most || score >= least)
                    continue;
                least = score;
                *window = largest;
                set_axes(choice, (const tess_axis[]){depth->axis, rows->axis, cols->axis});
            }
    return isfinite(least);
}

static tess_status refuse(const chooser *c, const tess_denoise_choice *choice, const char *advice,
                          tess_error *error)
{
    const tess_volume_wish *w = c->wish;
    const uint64_t needed = total_bytes(c, choice);
    const tess_shortage shortage = {.asked = w->asked_limit,
                                    .limit = w->limit,
                                    .bytes = choice->bytes,
                                    .others = w->others,
                                    .others_name = "volumes and views",
                                    .reserve = reserve(c),
                                    .needed = needed > w->job_needs ? needed : w->job_needs,
                                    .advice = advice};
    return tess_over_limit(&shortage, error);
}

static void explain(const chooser *c, tess_denoise_choice *choice)
{
    const double more = windows_of(choice, tess_axis_total_window) / voxels(c) - 1;
    snprintf(choice->reason, sizeof choice->reason,
             "%lld x %lld x %lld windows fit the limit of %.0f MiB; halos cost %.0f %% more voxels",
             (long long)choice->depth.tiles, (long long)choice->rows.tiles, (long long)choice->cols.tiles,
             (double)c->wish->limit / MIB, 100 * more);
}

/* What became of the tile that was asked for. */
static void explain_asked(const chooser *c, tess_denoise_choice *choice)
{
    const tess_axis *axes[TESS_SPATIAL] = {
        [TESS_DEPTH] = &choice->depth, [TESS_HEIGHT] = &choice->rows, [TESS_WIDTH] = &choice->cols};
    long long asked[TESS_SPATIAL], used[TESS_SPATIAL];
    bool same = true, cut = false;
    for (int i = 0; i < TESS_SPATIAL; i++) {
        used[i] = tess_axis_largest_tile(axes[i]);
        asked[i] = c->wish->tile[i] ? c->wish->tile[i] : used[i];
        same &= asked[i] == used[i];
        cut |= asked[i] != used[i] && axes[i]->tiles > 1;
    }
    if (same) {
        snprintf(choice->reason, sizeof choice->reason, "tile as asked");
        return;
    }
    int length = snprintf(choice->reason, sizeof choice->reason,
                          "tile %lld x %lld x %lld asked, %lld x %lld x %lld used: ", asked[TESS_DEPTH],
                          asked[TESS_HEIGHT], asked[TESS_WIDTH], used[TESS_DEPTH], used[TESS_HEIGHT],
                          used[TESS_WIDTH]);
    if (cut)
        snprintf(choice->reason + length, sizeof choice->reason - (size_t)length,
                 "tiles are alike and lie on the network's grid of %lld x %lld x %lld",
                 (long long)c->alignment[TESS_DEPTH], (long long)c->alignment[TESS_HEIGHT],
                 (long long)c->alignment[TESS_WIDTH]);
    else
        snprintf(choice->reason + length, sizeof choice->reason - (size_t)length, "the volume is no larger");
}

static tess_status choose_windows(chooser *c, tess_denoise_choice *choice, tess_error *error)
{
    const tess_volume_wish *w = c->wish;
    candidates all;
    for (int i = 0; i < TESS_SPATIAL; i++)
        cut_axis(c, i, &all);
    /* The line goes through the smallest window and the whole, which has been measured. */
    const double whole = (double)total_bytes(c, choice);
    double window = 0;
    (void)best_cut(&all, INFINITY, choice, &window);
    TESS_TRY(measure(c, choice, error));
    if (total_bytes(c, choice) > w->limit)
        return refuse(c, choice, "a smaller --halo, or a smaller model", error);
    const tess_denoise_choice smallest = *choice;
    const double fixed = (double)(total_bytes(c, choice) - choice->bytes.by[TESS_MEM_ACTIVATIONS]);
    double line = (whole - fixed) / voxels(c);
    for (int attempt = 0; attempt < TRIES; attempt++) {
        if (!best_cut(&all, fmax(((double)w->limit - fixed) / line, 0), choice, &window))
            break;
        TESS_TRY(measure(c, choice, error));
        if (total_bytes(c, choice) <= w->limit) {
            explain(c, choice);
            return TESS_OK;
        }
        /* Raised to what was measured, so that this cut is not proposed again. */
        line = 1.001 * fmax(line, ((double)total_bytes(c, choice) - fixed) / window);
    }
    *choice = smallest;
    explain(c, choice);
    return TESS_OK;
}

static tess_status choose(chooser *c, tess_denoise_choice *choice, tess_error *error)
{
    const tess_volume_wish *w = c->wish;
    const bool asked = w->tile[TESS_HEIGHT] > 0;
    tess_axis axes[TESS_SPATIAL];
    for (int i = 0; i < TESS_SPATIAL; i++)
        axes[i] = tess_axis_cut(c->padded[i], asked ? w->tile[i] : 0, c->halo[i], c->alignment[i]);
    set_axes(choice, axes);
    TESS_TRY(measure(c, choice, error));
    if (total_bytes(c, choice) > w->limit)
        return w->tile[TESS_HEIGHT] == 0 ? choose_windows(c, choice, error)
                                         : refuse(c, choice, "--tile auto", error);
    if (asked)
        explain_asked(c, choice);
    else if (w->tile[TESS_HEIGHT] < 0)
        snprintf(choice->reason, sizeof choice->reason, "the whole volume, as asked");
    else
        snprintf(choice->reason, sizeof choice->reason, "the whole volume fits the limit of %.0f MiB",
                 (double)w->limit / MIB);
    return TESS_OK;
}

tess_status tess_volume_choose(const tess_bound *bound, const tess_model_net *model, const tess_rates *rates,
                               const tess_volume_wish *wish, tess_denoise_choice *choice, tess_error *error)
{
    chooser c = {.bound = bound, .rates = rates, .wish = wish};
    const bool exact = wish->halo == TESS_HALO_EXACT, auto_halo = wish->halo == TESS_HALO_AUTO;
    *choice = (tess_denoise_choice){.batch = 1};
    for (int i = 0; i < TESS_SPATIAL; i++) {
        const bool depth = i == TESS_DEPTH;
        c.alignment[i] = depth ? tess_net_grid(model->net, TESS_DEPTH) : tess_bound_alignment(bound);
        c.padded[i] = tess_round_up(wish->size[i], depth ? tess_net_grid(model->net, TESS_DEPTH)
                                                         : tess_net_grid(model->net, TESS_HEIGHT));
        const int64_t halo = exact       ? (depth ? tess_bound_reach_depth(bound) : tess_bound_reach(bound))
                             : auto_halo ? (depth ? model->halo_depth : model->halo)
                                         : wish->halo;
        c.halo[i] = tess_round_up(halo, c.alignment[i]);
    }
    TESS_TRY(fit_seconds(&c, error));
    TESS_TRY(choose(&c, choice, error));
    choice->halo_depth = choice->depth.tiles > 1 ? c.halo[TESS_DEPTH] : 0;
    choice->halo = choice->rows.tiles * choice->cols.tiles > 1 ? c.halo[TESS_HEIGHT] : 0;
    return TESS_OK;
}
