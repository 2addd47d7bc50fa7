/* Measured blurs without a range or noise: both are derived from the measurements.
 *
 * Floats that look like an image of [0, 1] with noise are treated as one; others range from 0, or their least value,
 * to their largest. look/noise.c estimates the noise. */
#include "job/reconstruct/look/look.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/mem.h"
#include "job/common/note.h"
#include "job/reconstruct/look/contradiction.h"
#include "job/reconstruct/look/gains.h"
#include "job/reconstruct/look/noise.h"
#include "job/reconstruct/look/outliers.h"
#include "job/reconstruct/look/sampled_kernel.h"
#include "job/reconstruct/look/unit_range.h"
#include "job/reconstruct/problem/values.h"

static const double SHARE_OF_TYPE = 0.25; /* of an integer type's maximum: below it, giving "range" helps */

/* shares of values outside a given range, by more than noise explains, for a note and for a refusal */
static const double SOME_BEYOND = 0.1, ALL_BEYOND = 0.99;

static const double LEAST_PEAK = 1e-4; /* of a kernel, whatever it says */

static const double ALIKE = 4; /* ratio of the spans of bands: more is noted */

/* From one unit and offset to another. */
typedef struct scaling {
    double old_unit, old_offset, unit, offset;
} scaling;

static void scale(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    const scaling *by = user;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)values[i] * by->old_unit + by->old_offset - by->offset) / (float)by->unit;
}

typedef struct looking {
    tess_problem *problem;
    tess_recipe *recipe;
    tess_workspace *w;
    const tess_common *common;
} looking;

/* Measured values of this rank. */
static int64_t own_values(const looking *l)
{
    return tess_workspace_values(&l->w->op->measurement);
}

/* A given range that leaves out most measurements is in another unit. */
static tess_status check_given(const looking *l, const tess_extremes *e, tess_error *error)
{
    const tess_problem *p = l->problem;
    const double share = (double)e->outside / (double)e->count;
    const double ends[] = {p->offset, p->offset + p->unit, p->offset + e->low * p->unit,
                           p->offset + e->high * p->unit};
    if (p->as_published || !(share > SOME_BEYOND))
        return TESS_OK;
    if (share > ALL_BEYOND)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: its values, from %g to %g, lie outside \"range\": [%g, %g], which is in their units: "
            "8-bit pictures have [0, 255]; correct it, or leave it out",
            p->measurement, ends[2], ends[3], ends[0], ends[1]);
    tess_note(l->common, TESS_NOTE_WARNING,
              "%s: %.0f %% of its values, from %g to %g, lie far outside \"range\": [%g, %g], to which the "
              "result is "
              "clamped; it is in their units",
              p->measurement, 100 * share, ends[2], ends[3], ends[0], ends[1]);
    return TESS_OK;
}

/* Spans of the channels, which stand side by side. */
typedef struct spans {
    int64_t channels;
    float *low, *high;
} spans;

static void add_spans(void *user, int64_t first, int64_t count, float *values)
{
    const spans *s = user;
    for (int64_t i = 0; i < count; i++) {
        const int64_t c = (first + i) % s->channels;
        s->low[c] = fminf(s->low[c], values[i]);
        s->high[c] = fmaxf(s->high[c], values[i]);
    }
}

/* Collective. */
static tess_status share_span(tess_share *share, float *low, float *high, tess_error *error)
{
    double ends[2] = {(double)*low, (double)*high};
    TESS_TRY(tess_share_add(share, TESS_SHARE_LEAST, &ends[0], error));
    TESS_TRY(tess_share_add(share, TESS_SHARE_MOST, &ends[1], error));
    *low = (float)ends[0];
    *high = (float)ends[1];
    return TESS_OK;
}

static void note_spans(const looking *l, const spans *s)
{
    const tess_problem *p = l->problem;
    float widest = 0, narrowest = INFINITY;
    int64_t at = 0;
    for (int64_t c = 0; c < s->channels; c++) {
        const float span = s->high[c] - s->low[c];
        widest = fmaxf(widest, span);
        if (!(span > 0 && span < narrowest)) /* a constant band has nothing to lose */
            continue;
        narrowest = span;
        at = c;
    }
    if ((double)widest > ALIKE * (double)narrowest)
        tess_note(
            l->common, TESS_NOTE_WARNING,
            "%s: its bands have different ranges: band %lld spans %.4g, another one %.4g, beside which it "
            "is restored poorly; give each band a problem of its own",
            p->measurement, (long long)at + 1, (double)narrowest * p->unit, (double)widest * p->unit);
}

/* A band that fills a small part of the common range has almost no contrast for the network, and less noise than is
 * assumed. Photographs have 8 bits, or three channels that belong together. */
static tess_status doubt_bands(const looking *l, tess_error *error)
{
    const tess_problem *p = l->problem;
    const bool photograph = p->range_from == TESS_RANGE_FROM_DEFAULT ||
                            p->range_from == TESS_RANGE_FROM_GIVEN ||
                            (p->range_from == TESS_RANGE_FROM_TYPE && (p->channels == 3 || p->unit < 256));
    if (photograph || p->channels < 2)
        return TESS_OK;
    float *memory = tess_small_alloc(2 * (size_t)p->channels, sizeof *memory);
    tess_status status =
        memory ? TESS_OK
               : tess_fail(error, TESS_NO_MEMORY, "no memory to look at %lld bands", (long long)p->channels);
    status = tess_share_agree(p->share, status, error);
    if (status != TESS_OK) {
        tess_small_free(memory);
        return status;
    }
    spans s = {p->channels, memory, memory + p->channels};
    for (int64_t c = 0; c < p->channels; c++) {
        s.low[c] = INFINITY;
        s.high[c] = -INFINITY;
    }
    status = tess_workspace_pieces(l->w, l->w->measurement.data, own_values(l), false, add_spans, &s, error);
    status = tess_share_keep(p->share, status, error);
    for (int64_t c = 0; c < p->channels && status == TESS_OK; c++)
        status = share_span(p->share, &s.low[c], &s.high[c], error);
    if (status == TESS_OK)
        note_spans(l, &s);
    tess_small_free(memory);
    return status;
}

/* The least noise of a range that is far too large hides faint details. A smaller range would cut off points, which are brighter than their
 * blurs; that of floats does not. */
static void note_type(const looking *l, double largest)
{
    const tess_problem *p = l->problem;
    char hidden[96] = "";
    if (l->recipe->noise_from == TESS_NOISE_FROM_DEFAULT)
        snprintf(hidden, sizeof hidden,
                 "; at least %.3g is taken for noise there (0.005 of it), so that details below it vanish",
                 tess_problem_least_noise(p) * p->unit);
    tess_note(
        l->common, TESS_NOTE_WARNING,
        "%s: its largest value is %g, of a range up to %g, which is that of its type%s; save it as "
        "floats, whose range is found and cuts nothing off, or, if the sharp picture cannot be brighter "
        "than a value (as of a camera of fewer bits), give \"range\": [0, that value]",
        p->measurement, largest * p->unit, p->unit, hidden);
}

/* Integers that lie close together far from 0, as kelvins x 100, use so little of their type's range that its least noise would hide
 * them. Those of 8 bits are photographs. */
static bool is_narrow(const tess_problem *p, const tess_extremes *e)
{
    const double span = e->high - e->low;
    return p->range_from == TESS_RANGE_FROM_TYPE && p->unit > 255 && span > 0 && span < SHARE_OF_TYPE &&
           (e->high >= SHARE_OF_TYPE || e->low > 0.5 * e->high);
}

static tess_status find_range(const looking *l, const tess_extremes *e, tess_error *error)
{
    tess_problem *p = l->problem;
    const bool narrow = is_narrow(p, e);
    if (narrow) {
        p->range_from = TESS_RANGE_FROM_DATA;
    } else if (p->range_from == TESS_RANGE_FROM_TYPE) {
        if (e->high > 0 && e->high < SHARE_OF_TYPE)
            note_type(l, e->high);
        return TESS_OK;
    }
    if (p->range_from == TESS_RANGE_FROM_GIVEN)
        return check_given(l, e, error);
    if (p->range_from != TESS_RANGE_FROM_DATA)
        return TESS_OK;
    bool is_one = false;
    if (p->floats)
        TESS_TRY(tess_problem_looks_like_one(p, l->w, e, &is_one, error));
    if (is_one) {
        p->range_from = TESS_RANGE_FROM_DEFAULT;
        return TESS_OK;
    }
    /* Starts at 0 if the data do, otherwise lower, because the sharp picture can be darker than its blurred
     * copies. */
    const double old_unit = p->unit, old_offset = p->offset;
    double low = e->low * old_unit + old_offset, high = e->high * old_unit + old_offset;
    if (narrow) {
        low = rint(low);
        high = rint(high);
    }
    p->offset = low < 0 || low > 0.5 * high ? low - 0.1 * (high - low) : 0;
    p->unit = high - p->offset >= 1e-30 ? high - p->offset : 1; /* a constant image: any unit works */
    p->low = 0;
    p->high = 1;
    /* A point is brighter than its blur, but the kernel leaves so much of it that it cannot be brighter than this. */
    tess_kernel_facts kernels;
    TESS_TRY(tess_kernels_look(p, &kernels, error));
    p->above = fmax(1 / fmax(kernels.peak, LEAST_PEAK) - 1, 0);
    if (l->recipe->noise_from == TESS_NOISE_FROM_GIVEN)
        l->recipe->noise *= old_unit / p->unit;
    scaling by = {old_unit, old_offset, p->unit, p->offset};
    return tess_workspace_pieces(l->w, l->w->measurement.data, own_values(l), true, scale, &by, error);
}

/* A frame that was lost would make the result darker, without a word. */
static tess_status check_lost(const tess_problem *p, tess_workspace *w, tess_error *error)
{
    const int64_t values = tess_workspace_values(&w->op->measurement) / p->count;
    int64_t lost = -1, lively = 0;
    for (int64_t i = 0; i < p->count && p->count > 1; i++) {
        tess_extremes seen;
        TESS_TRY(tess_workspace_extremes(w, (float *)w->measurement.data + i * values, values, &seen, error));
        lively += seen.high > seen.low;
        if (!(seen.high > seen.low) && lost < 0)
            lost = i;
    }
    if (lost < 0 || lively == 0)
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: all values of blur %lld (counted from 0) are equal, as of a frame that was lost; "
                     "leave it and its kernel out",
                     p->measurement, (long long)lost);
}

/* Collective: outliers that were replaced may have been all that 32-bit floats told apart. */
static tess_status check_rounding(const looking *l, tess_error *error)
{
    const tess_problem *p = l->problem;
    tess_extremes seen;
    if (p->outliers == 0 || p->rounded == 0)
        return TESS_OK;
    TESS_TRY(tess_workspace_extremes(l->w, l->w->measurement.data, own_values(l), &seen, error));
    tess_kept kept = {true, seen.low * p->unit + p->offset, seen.high * p->unit + p->offset, p->rounded};
    const float largest = (float)fmax(fabs(kept.low), fabs(kept.high));
    kept.lost = fmin(kept.lost, 0.5 * ((double)nextafterf(largest, INFINITY) - (double)largest));
    return tess_share_agree(p->share, tess_kept_check(&kept, p->measurement, error), error);
}

tess_status tess_problem_look_at_blurs(tess_problem *problem, tess_recipe *recipe, tess_workspace *w,
                                       const tess_common *common, tess_error *error)
{
    const looking l = {problem, recipe, w, common};
    tess_extremes seen;
    if (!problem->as_published)
        TESS_TRY(tess_share_agree(problem->share, check_lost(problem, w, error), error));
    TESS_TRY(tess_problem_replace_outliers(problem, w, common, error));
    TESS_TRY(check_rounding(&l, error));
    TESS_TRY(tess_share_agree(problem->share, tess_problem_level_gains(problem, w, common, error), error));
    TESS_TRY(tess_workspace_extremes(w, w->measurement.data, tess_workspace_values(&w->op->measurement),
                                     &seen, error));
    TESS_TRY(tess_share_agree(problem->share, find_range(&l, &seen, error), error));
    TESS_TRY(doubt_bands(&l, error));
    if (recipe->noise_from == TESS_NOISE_FROM_DEFAULT)
        TESS_TRY(tess_problem_find_noise(problem, recipe, w, common, seen.low == seen.high, error));
    TESS_TRY(tess_problem_doubt_noise(problem, recipe, w, common, error));
    return tess_problem_find_contradictions(problem, recipe, w, common, error);
}
