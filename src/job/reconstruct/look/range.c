/* Estimates the range of an image from its measurements. A filtered backprojection is scaled so that its projections
 * fit the measurements best; the range ends at the value that all but a few pixels stay below. A backprojection counts
 * each view alike, so it smears the object where views are not spread evenly, repeat each other, or see one half of the
 * object each. Its projections then do not fit at any scale, and conjugate gradients correct it. The range is needed
 * because networks were trained on images up to 1, while absorption coefficients may be 0.02 or 2000. */
#include "job/reconstruct/look/range.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/reconstruct/look/look.h"
#include "job/reconstruct/look/scan.h"
#include "job/reconstruct/run/noise.h"
#include "solve/cg.h"

enum { BINS = 4096, LEAST_PIXELS = 2, CG_STEPS = 20, MANY_PIXELS = 8 };
static const double ABOVE = 1e-4; /* share of the pixels that may be brighter */
static const double ROOM =
    1.2; /* an image above its range is clamped; one far below it is only denoised slightly more */
static const double ROOM_OF_SMALL = 2.2; /* backprojections blur what is as small as a pixel */
static const double WORSE = 1.05;        /* squares of the differences from the views: more is worse */
/* share of the measurements' squares that an evenly spread scan without noise leaves: less than half of it */
static const double POOR = 0.01;
static const double AT_END =
    5e-4; /* share of the result's pixels at the end of the range that is worth a note */
/* Of a given range: a result below the first, or views that are brighter than it explains by the second, are in another unit. */
static const double SMALL_PART = 0.1, FAINT = 1.03;
/* share of the measurements' sum that is negative if the image has negative values */
static const double SIGNED = 0.2;
static const double TOO_LOW = -0.25; /* of the range's upper end: values below it are refused */
static const double NEGATIVE = 0.4;  /* mean of the negative part of noise, in deviations */

typedef struct histogram {
    tess_extremes of;
    double bin[BINS]; /* numbers of pixels, as ranks can add them up */
} histogram;

static void sort(void *user, int64_t first, int64_t count, float *at)
{
    (void)first;
    histogram *h = user;
    for (int64_t i = 0; i < count; i++) {
        const int64_t bin = (int64_t)(((double)at[i] - h->of.low) / (h->of.high - h->of.low) * BINS);
        h->bin[tess_max_i64(0, tess_min_i64(bin, BINS - 1))]++;
    }
}

/* The value that a share of the pixels, but at least some, lie beyond. */
static double tail(const histogram *h, bool below)
{
    const double most = (double)tess_max_i64(LEAST_PIXELS, (int64_t)(ABOVE * (double)h->of.count));
    double seen = 0;
    int64_t i = 0;
    while (i < BINS - 1 && (seen += h->bin[below ? i : BINS - 1 - i]) <= most)
        i++;
    const double bin = (h->of.high - h->of.low) / BINS;
    return below ? h->of.low + bin * (double)i : h->of.high - bin * (double)i;
}

/* The factor at which the projections of `image` fit the measurements best, 1 if there is none, and the share of the
 * measurements' squares that they leave and that is not noise. */
static tess_status fit(tess_workspace *w, const void *image, double noise, double *factor, double *left,
                       tess_error *error)
{
    double rays = (double)tess_workspace_values(&w->op->measurement);
    const tess_data_term *term = &w->term;
    const void *measured = w->measurement.data;
    double square, product, all;
    TESS_TRY(tess_share_add(w->op->share, TESS_SHARE_SUM, &rays, error));
    TESS_TRY(tess_data_term_energy(term, image, &square, error));
    TESS_TRY(tess_vectors_dot(&term->measurements, term->residual, measured, &product, error));
    TESS_TRY(tess_vectors_dot(&term->measurements, measured, measured, &all, error));
    const bool fits = square > 0 && product > 0;
    *factor = fits ? product / square : 1;
    *left = fits ? 1 - product / all * (product / square) - noise * noise * rays / all : 0;
    return TESS_OK;
}

/* |A c - y|^2, where c is `image` times `factor`, clamped to the range. */
static tess_status misfit(tess_workspace *w, const void *image, double factor, double low, double high,
                          double *square, tess_error *error)
{
    const tess_data_term *term = &w->term;
    const tess_sum clamped = {.a = factor, .x = image, .low = low, .high = high};
    double energy, product, measured;
    TESS_TRY(tess_vectors_sum(&term->images, &clamped, w->vectors[0], error));
    TESS_TRY(tess_data_term_energy(term, w->vectors[0], &energy, error));
    TESS_TRY(tess_vectors_dot(&term->measurements, term->residual, w->measurement.data, &product, error));
    TESS_TRY(
        tess_vectors_dot(&term->measurements, w->measurement.data, w->measurement.data, &measured, error));
    *square = energy - 2 * product + measured;
    return TESS_OK;
}

/* The few pixels above the range are noise, or a small dense object. The views decide: without such an object they do
 * not fit. `highest` is the largest value of the image. */
static tess_status widen(tess_workspace *w, const void *image, double factor, double highest, double ends[2],
                         tess_error *error)
{
    double whole, cut;
    if (!(highest > ends[1]) || !(ends[1] > 0))
        return TESS_OK;
    TESS_TRY(misfit(w, image, factor, ends[0], highest, &whole, error));
    TESS_TRY(misfit(w, image, factor, ends[0], ends[1], &cut, error));
    if (cut > WORSE * whole)
        ends[1] = ROOM_OF_SMALL * highest;
    return TESS_OK;
}

/* The range of `image` times `factor`; `both`: it may have negative values. */
static tess_status ends_of(const tess_problem *p, tess_workspace *w, void *image, double factor, bool both,
                           double ends[2], tess_error *error)
{
    const int64_t count = tess_workspace_values(&w->op->image);
    tess_share *share = w->op->share;
    histogram *h = tess_small_alloc(1, sizeof *h);
    tess_status status = h ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a histogram");
    status = tess_share_agree(share, status, error);
    if (status == TESS_OK)
        status = tess_workspace_extremes(w, image, count, &h->of, error);
    if (status == TESS_OK && (h->of.bad || !isfinite(factor)))
        status = tess_fail(error, TESS_BAD_INPUT,
                           "%s: the measurements are too large for 32-bit floats; scale them down",
                           p->measurement);
    if (status == TESS_OK && h->of.high > h->of.low) {
        status = tess_workspace_pieces(w, image, count, false, sort, h, error);
        status = tess_share_agree(share, status, error);
        if (status == TESS_OK && tess_share_many(share))
            status = tess_dist_sum_f64(share->dist, h->bin, BINS, error);
    }
    if (status != TESS_OK) {
        tess_small_free(h);
        return status;
    }
    ends[0] = both ? fmin(ROOM * factor * tail(h, true), 0) : 0;
    ends[1] = h->of.high > h->of.low ? ROOM * factor * tail(h, false) : 0;
    const double highest = factor * h->of.high;
    tess_small_free(h);
    return widen(w, image, factor, highest, ends, error);
}

static tess_status ask(void *user, tess_error *error)
{
    return tess_stop_check(user, error);
}

/* A backprojection that does not fit, at the factor where it fits best, is corrected. If that explains the views, the
 * range holds both images; otherwise what is left is noise. */
static tess_status correct(const tess_problem *p, tess_workspace *w, double noise, double factor, double left,
                           bool both, double ends[2], tess_error *error)
{
    void *image = w->vectors[1], *const others[TESS_CG_VECTORS] = {w->vectors[0], w->vectors[2],
                                                                   w->vectors[3]};
    const tess_sum scaled = {.a = factor, .x = image};
    const tess_cg_settings cg = {.iterations = CG_STEPS,
                                 .tolerance = 1e-4,
                                 .shift = 1e-8,
                                 .warm = true,
                                 .tick = {ask, &w->engine->stop}};
    tess_cg_result result;
    double again, remains, corrected[2];
    TESS_TRY(tess_vectors_sum(&w->term.images, &scaled, image, error));
    TESS_TRY(tess_cg(&w->term, &cg, others, image, &result, error));
    TESS_TRY(fit(w, image, noise, &again, &remains, error));
    if (!(remains < 0.5 * left))
        return TESS_OK;
    TESS_TRY(ends_of(p, w, image, 1, both, corrected, error));
    ends[0] = corrected[0];
    ends[1] = fmax(ends[1], corrected[1]);
    return TESS_OK;
}

/* Noise makes an image look brighter and partly negative, so the filter that suits it is used. */
static tess_status estimate(const tess_problem *p, tess_recipe *recipe, tess_workspace *w, double noise,
                            double ends[2], tess_error *error)
{
    tess_operator *op = w->op;
    void *image = w->vectors[1];
    double factor, left, deviation;
    tess_extremes measured;
    TESS_TRY(tess_workspace_extremes(w, w->measurement.data, tess_workspace_values(&op->measurement),
                                     &measured, error));
    const double by_noise = NEGATIVE * noise * (double)measured.count;
    const bool both = measured.negative - by_noise > SIGNED * measured.positive;
    recipe->filter = TESS_FILTER_RAM_LAK;
    for (bool again = false;; again = true) {
        tess_recipe_set_filter(p, op, recipe->filter);
        op->table->inverse(op, w->measurement.data, image, w->scratch, NULL);
        TESS_TRY(fit(w, image, noise, &factor, &left, error));
        TESS_TRY(ends_of(p, w, image, factor, both, ends, error));
        if (again || !(ends[1] > 0) || !(noise > 0))
            break;
        TESS_TRY(tess_recipe_choose_filter(p, recipe, w, noise, ends[1], &deviation, error));
        if (recipe->filter == TESS_FILTER_RAM_LAK)
            break;
    }
    if (left > POOR)
        return correct(p, w, noise, factor, left, both, ends, error);
    double least = 0; /* of an image that explains the views; of another one it may be an artefact */
    if (ends[1] > 0)
        TESS_TRY(tess_problem_least(w, image, factor, TOO_LOW * ends[1], &least, error));
    ends[0] = fmin(ends[0], least);
    return TESS_OK;
}

static tess_status find_scan_range(tess_problem *p, tess_recipe *recipe, tess_workspace *w, tess_error *error)
{
    double ends[2] = {0, 1};
    if (!w->op->table->inverse)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "%s: has no \"range\", and without an FFT on this device it cannot be estimated; give "
            "it: [least, largest] value of the image",
            p->name);
    const bool given = recipe->noise_from == TESS_NOISE_FROM_GIVEN;
    TESS_TRY(estimate(p, recipe, w, fmax(given ? recipe->noise : p->noise_estimate, 0), ends, error));
    if (!(ends[1] > 0) || !(ends[1] > 1e-30)) /* all measurements are zero: any range works */
        ends[1] = 1;
    if (ends[0] < TOO_LOW * ends[1])
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: its views make an image from %.4g to %.4g, but what attenuates rays is not negative; check "
            "their sign and \"flat\", or give \"range\": [least, largest value]",
            p->measurement, ends[0], ends[1]);
    p->unit = ends[1];
    p->low = ends[0] / p->unit;
    p->high = 1;
    if (given)
        recipe->noise /= p->unit;
    p->noise_estimate /= p->unit; /* negative, if there is none, remains so */
    const tess_sum scaled = {.a = 1 / p->unit, .x = w->measurement.data};
    return tess_vectors_sum(&w->term.measurements, &scaled, w->measurement.data, error);
}

tess_status tess_problem_find_range(tess_problem *p, tess_recipe *recipe, tess_workspace *w,
                                    const tess_common *common, tess_error *error)
{
    if (!p->synthetic && p->physics == TESS_PHYSICS_BLUR)
        return tess_problem_look_at_blurs(p, recipe, w, common, error);
    const bool unknown = tess_problem_noise_unknown(p, recipe);
    if (unknown)
        TESS_TRY(tess_problem_find_scan_noise(p, recipe, w, error));
    if (p->range_from == TESS_RANGE_FROM_DATA)
        TESS_TRY(find_scan_range(p, recipe, w, error));
    if (unknown)
        tess_problem_use_scan_noise(p, recipe, common);
    return TESS_OK;
}

typedef struct ending {
    float high;
    int64_t count;
} ending;

static void count_at_end(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    ending *e = user;
    for (int64_t i = 0; i < count; i++)
        e->count += values[i] >= e->high;
}

tess_status tess_problem_at_end(const tess_problem *p, tess_workspace *w, double *at_end, tess_error *error)
{
    ending e = {.high = (float)(0.99999 * tess_problem_top(p))};
    const int64_t count = tess_workspace_values(&w->op->image);
    TESS_TRY(tess_share_keep(
        w->op->share, tess_workspace_pieces(w, w->vectors[0], count, false, count_at_end, &e, error), error));
    *at_end = (double)e.count;
    return tess_share_add(w->op->share, TESS_SHARE_SUM, at_end, error);
}

/* A given range of a scan in another unit. Where it is too low, the image is cut off, and so too faint for its views. */
static tess_status doubt_given(const tess_problem *p, tess_workspace *w, double at_end,
                               const tess_common *common, tess_error *error)
{
    const double all = (double)tess_workspace_all_values(w), ends[] = {p->low * p->unit, p->high * p->unit};
    tess_extremes seen;
    double factor, left;
    TESS_TRY(tess_workspace_extremes(w, w->vectors[0], tess_workspace_values(&w->op->image), &seen, error));
    TESS_TRY(fit(w, w->vectors[0], 0, &factor, &left, error));
    if (seen.high < SMALL_PART * p->high)
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: the largest value of the result is %.4g, a small part of \"range\": [%g, %g], for which "
            "the network takes it as almost empty; \"range\" is in units of the image: correct it, or "
            "leave it out",
            p->name, seen.high * p->unit, ends[0], ends[1]);
    else if (at_end > MANY_PIXELS && at_end > AT_END * all && factor > FAINT)
        tess_note(
            common, TESS_NOTE_WARNING,
            "%s: %lld values of the result are cut off at the end of \"range\": [%g, %g], and its views are "
            "%.0f %% brighter than it explains; \"range\" is in units of the image: correct it, or "
            "leave it out",
            p->name, (long long)at_end, ends[0], ends[1], 100 * (factor - 1));
    return TESS_OK;
}

tess_status tess_problem_doubt_range(const tess_problem *p, tess_workspace *w, const tess_common *common,
                                     tess_error *error)
{
    const bool blur = p->physics == TESS_PHYSICS_BLUR,
               given = p->range_from == TESS_RANGE_FROM_GIVEN && !blur && !p->synthetic && !p->as_published;
    if (p->range_from != TESS_RANGE_FROM_DATA && !given)
        return TESS_OK;
    double at_end;
    TESS_TRY(tess_problem_at_end(p, w, &at_end, error));
    if (given)
        return doubt_given(p, w, at_end, common, error);
    if (at_end > MANY_PIXELS && at_end > AT_END * (double)tess_workspace_all_values(w))
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: %lld values of the result are cut off at %.4g, the end of the estimated range; if the "
                  "%s, give \"range\": [%.4g, largest value]",
                  p->measurement, (long long)at_end, p->offset + tess_problem_top(p) * p->unit,
                  blur ? "sharp picture may be brighter" : "object may be denser",
                  p->offset + p->low * p->unit);
    return TESS_OK;
}
