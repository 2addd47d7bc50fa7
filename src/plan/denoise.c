/* Choosing tiles: the whole image when it fits; else the cut that computes the fewest pixels twice among those that fit.
 * Candidates are compared by a straight line for the arena (bytes a pixel), the best one is then planned in earnest, and
 * the line is corrected until plan and limit agree. When that finds nothing, the cut that takes the least is the last
 * candidate: so a limit is refused exactly when it is less than that cut's bytes, which the refusal names. */
#include "plan/denoise.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "plan/denoise_impl.h"
#include "plan/limit.h"

enum { MOST_BATCH = 64, TRIES = 12 };

/* On the host: code pages, stacks and tables, which the system counts too. A card's driver grants what it is asked for,
 * rounded as `granted` says, and little more. */
uint64_t tess_denoise_reserve(bool apart)
{
    return (uint64_t)(apart ? 1 : 4) << 20;
}

uint64_t tess_denoise_total(const tess_denoise_wish *w, const tess_denoise_choice *choice)
{
    return tess_mem_total(&choice->bytes) + w->others + w->other_weights + tess_denoise_reserve(w->apart);
}

static bool host_fits(const tess_denoise_wish *w, const tess_denoise_choice *choice)
{
    return !w->apart || choice->io_block + w->held_bytes <= w->host_limit;
}

bool tess_denoise_fits(const tess_denoise_wish *w, const tess_denoise_choice *choice)
{
    return tess_denoise_total(w, choice) <= w->limit && host_fits(w, choice);
}

tess_status tess_denoise_refuse(const tess_denoise_wish *w, const tess_denoise_choice *choice,
                                tess_error *error)
{
    const double mib = 1 << 20;
    if (!host_fits(w, choice))
        return tess_fail(error, TESS_OVER_LIMIT,
                         "%.1fM of rows do not fit the %.1fM that the host can give; use a smaller --tile",
                         (double)(choice->io_block + w->held_bytes) / mib, (double)w->host_limit / mib);
    tess_shortage shortage = {.asked = w->asked_limit,
                              .limit = w->limit,
                              .bytes = choice->bytes,
                              .others = w->others,
                              .others_name = "images and measurements",
                              .reserve = tess_denoise_reserve(w->apart),
                              .needed = tess_denoise_total(w, choice),
                              .advice = w->tile_height ? "--tile auto --batch auto"
                                                       : "a smaller --halo or --batch, or a smaller model"};
    shortage.bytes.by[TESS_MEM_WEIGHTS] += w->other_weights;
    if (w->job_needs > shortage.needed)
        shortage.needed = w->job_needs;
    return tess_over_limit(&shortage, error);
}

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
    c->seconds_per_run =
        seconds[1] - c->seconds_per_pixel * pixels[1] + tess_rates_run_overhead(c->rates, c->bound);
    return TESS_OK;
}

/* What became of the tile that was asked for. */
static void explain_asked(const chooser *c, tess_denoise_choice *choice)
{
    const tess_denoise_wish *w = c->wish;
    const int64_t high = tess_axis_largest_tile(&choice->rows), wide = tess_axis_largest_tile(&choice->cols);
    char why[96];
    if (w->tile_height == TESS_TILE_WHOLE) {
        snprintf(choice->reason, sizeof choice->reason, "the whole image, as asked");
        return;
    }
    if (high == w->tile_height && wide == w->tile_width) {
        snprintf(choice->reason, sizeof choice->reason, "tile as asked");
        return;
    }
    if ((high == w->tile_height || choice->rows.tiles == 1) &&
        (wide == w->tile_width || choice->cols.tiles == 1))
        snprintf(why, sizeof why, "the image is no larger");
    else
        snprintf(why, sizeof why, "tiles are alike and lie on the network's grid of %lld",
                 (long long)c->alignment);
    snprintf(choice->reason, sizeof choice->reason, "tile %lld x %lld asked, %lld x %lld used: %s",
             (long long)w->tile_height, (long long)w->tile_width, (long long)high, (long long)wide, why);
}

static void explain_cut(const chooser *c, tess_denoise_choice *choice)
{
    const double area =
        (double)tess_axis_total_window(&choice->rows) * (double)tess_axis_total_window(&choice->cols);
    snprintf(choice->reason, sizeof choice->reason,
             "%lld x %lld tiles fit the limit of %.0f MiB; halos cost %.0f %% more pixels",
             (long long)choice->rows.tiles, (long long)choice->cols.tiles, (double)c->wish->limit / (1 << 20),
             100 * (area / ((double)c->padded_h * (double)c->padded_w) - 1));
}

/* The line through what the whole image takes, and the cuts to compare by it. */
static void fit_line(chooser *c, const tess_denoise_choice *whole)
{
    const tess_denoise_wish *w = c->wish;
    /* Workspace depends on the channels, and on a device with several engines on the size class a little. */
    double growing = (double)whole->arena_bytes;
    c->fixed_bytes = (double)(whole->bytes.by[TESS_MEM_WEIGHTS] + whole->bytes.by[TESS_MEM_WORKSPACE]);
    if (w->apart)
        growing += (double)(whole->in_stage + whole->out_stage);
    else
        c->fixed_bytes += (double)(w->held_bytes + w->fixed_io_bytes);
    c->bytes_per_pixel = growing / ((double)c->padded_h * (double)c->padded_w * (double)whole->batch);
    tess_denoise_list_cuts(c);
}

/* The best of the cuts that fit, if the line leads to one. */
static tess_status choose_cut(chooser *c, tess_denoise_choice *choice, bool *found, tess_error *error)
{
    const tess_denoise_wish *w = c->wish;
    const double first = c->bytes_per_pixel,
                 most = (double)w->limit -
                        (double)(tess_denoise_reserve(w->apart) + w->others + w->other_weights);
    double estimate = 0;
    *found = false;
    for (int i = 0; i < TRIES && !*found && tess_denoise_best_cut(c, most, choice, &estimate); i++) {
        TESS_TRY(tess_denoise_measure(c, choice, error));
        *found = tess_denoise_fits(w, choice);
        /* The line is raised to what was measured, so that this cut is not proposed again. */
        const double pixels = (double)tess_axis_largest_window(&choice->rows) *
                              (double)tess_axis_largest_window(&choice->cols) * (double)choice->batch;
        const double missing = fmax((double)tess_mem_total(&choice->bytes) - estimate, 0);
        c->bytes_per_pixel = 1.001 * (c->bytes_per_pixel + missing / pixels);
    }
    c->bytes_per_pixel = first;
    return TESS_OK;
}

static tess_status choose_tile(chooser *c, tess_denoise_choice *choice, tess_error *error)
{
    const tess_denoise_wish *w = c->wish;
    if (w->tile_height != 0) {
        const bool whole = w->tile_height == TESS_TILE_WHOLE;
        tess_denoise_cut(c, whole ? 0 : w->tile_height, whole ? 0 : w->tile_width, choice);
        explain_asked(c, choice);
        return tess_denoise_measure(c, choice, error);
    }
    tess_denoise_cut(c, 0, 0, choice);
    TESS_TRY(tess_denoise_measure(c, choice, error));
    if (!w->least && tess_denoise_fits(w, choice)) {
        snprintf(choice->reason, sizeof choice->reason, "the whole image fits the limit of %.0f MiB",
                 (double)w->limit / (1 << 20));
        return TESS_OK;
    }
    bool found = false;
    fit_line(c, choice);
    if (!w->least)
        TESS_TRY(choose_cut(c, choice, &found, error));
    if (!found)
        TESS_TRY(tess_denoise_least_cut(c, choice, error));
    explain_cut(c, choice);
    return TESS_OK;
}

/* Small windows leave the device idle or repeat work on the weights; a batch shares it. The smallest batch
 * within 1 % of the best that fits. */
static tess_status choose_batch(const chooser *c, tess_denoise_choice *choice, tess_error *error)
{
    const int64_t most = tess_min_i64(tess_denoise_longest_run(&choice->cols), MOST_BATCH);
    tess_denoise_choice best = *choice;
    for (int64_t batch = 2; batch <= most; batch *= 2) {
        tess_denoise_choice trial = *choice;
        trial.batch = batch;
        TESS_TRY(tess_denoise_measure(c, &trial, error));
        if (!tess_denoise_fits(c->wish, &trial))
            break;
        if (trial.seconds < 0.99 * best.seconds)
            best = trial;
    }
    *choice = best;
    return TESS_OK;
}

tess_status tess_denoise_choose(const tess_bound *bound, const tess_model_net *model, const tess_rates *rates,
                                const tess_denoise_wish *wish, tess_denoise_choice *choice, tess_error *error)
{
    chooser c = {.bound = bound, .model = model, .rates = rates, .wish = wish};
    *choice = (tess_denoise_choice){.batch = 1, .depth = tess_axis_cut(1, 0, 0, 1)};
    c.grid = tess_net_grid(model->net, TESS_HEIGHT);
    c.alignment = tess_bound_alignment(bound);
    c.reach = tess_bound_reach(bound);
    c.padded_h = tess_round_up(wish->height, c.grid);
    c.padded_w = tess_round_up(wish->width, c.grid);
    TESS_TRY(fit_seconds(&c, error));
    TESS_TRY(choose_tile(&c, choice, error));
    if (!wish->least && !tess_denoise_fits(wish, choice))
        return tess_denoise_refuse(wish, choice, error);
    if (wish->batch == 0 && !wish->least)
        TESS_TRY(choose_batch(&c, choice, error));
    const int64_t above = choice->rows.tiles > 1 ? choice->rows.halo : 0,
                  beside = choice->cols.tiles > 1 ? choice->cols.halo : 0;
    choice->halo = tess_max_i64(above, beside);
    return TESS_OK;
}
