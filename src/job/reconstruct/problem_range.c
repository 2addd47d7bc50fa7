/* The range of an image where none was given, from the measurements: a filtered backprojection, brought to the scale at which
 * its projections fit them best (views over a part of a turn, or an orbit that is none of FDK's, only change that), and of
 * its values the one that all but a few pixels stay below. Networks know images up to 1, and absorption coefficients are
 * 0.02 as well as 2000. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/reconstruct/reconstruct.h"
#include "physics/filter.h"
#include "physics/radon.h"
#include "physics/rays.h"

enum { BINS = 4096, LEAST_PIXELS = 2 };
static const double ABOVE = 1e-4; /* of the pixels, that may be brighter */
static const double ROOM =
    1.2; /* an image above its range is clamped; one far below it is only denoised a little more */
static const double SIGNED = 0.2; /* of the measurements' sum, that is negative where images are */

typedef struct values {
    double low, high;              /* of all */
    double negative, positive;     /* sums */
    int64_t bin[BINS], count, bad; /* bad: not finite */
} values;

static void look(void *user, int64_t first, int64_t count, float *at)
{
    (void)first;
    values *v = user;
    for (int64_t i = 0; i < count; i++) {
        const double value = (double)at[i];
        v->low = fmin(v->low, value);
        v->high = fmax(v->high, value);
        *(value < 0 ? &v->negative : &v->positive) += fabs(value);
        v->bad += !isfinite(value);
    }
    v->count += count;
}

static void sort(void *user, int64_t first, int64_t count, float *at)
{
    (void)first;
    values *v = user;
    for (int64_t i = 0; i < count; i++) {
        const int64_t bin = (int64_t)(((double)at[i] - v->low) / (v->high - v->low) * BINS);
        v->bin[tess_max_i64(0, tess_min_i64(bin, BINS - 1))]++;
    }
}

/* The value that a share of the pixels, and no fewer than some, lie beyond. */
static double tail(const values *v, bool below)
{
    const int64_t most = tess_max_i64(LEAST_PIXELS, (int64_t)(ABOVE * (double)v->count));
    int64_t seen = 0, i = 0;
    while (i < BINS - 1 && (seen += v->bin[below ? i : BINS - 1 - i]) <= most)
        i++;
    const double bin = (v->high - v->low) / BINS;
    return below ? v->low + bin * (double)i : v->high - bin * (double)i;
}

static int64_t count_of(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

/* The factor at which the projections of `image` fit the measurements best; 1 where there is none. */
static tess_status fit(tess_reconstruct_job *job, const void *image, double *factor, tess_error *error)
{
    const tess_data_term *term = &job->term;
    double square, product;
    TESS_TRY(tess_data_term_energy(term, image, &square, error));
    TESS_TRY(tess_vectors_dot(&term->measurements, term->residual, job->measurement.data, &product, error));
    *factor = square > 0 && product > 0 ? product / square : 1;
    return TESS_OK;
}

static tess_status estimate(tess_reconstruct_job *job, values *v, double ends[2], tess_error *error)
{
    tess_operator *op = job->op;
    void *image = job->vectors[1];
    double factor;
    TESS_TRY(
        tess_device_pieces(job, job->measurement.data, count_of(&op->measurement), false, look, v, error));
    const bool both = v->negative > SIGNED * v->positive;
    (job->problem.physics == TESS_PHYSICS_CONE ? tess_rays_set_filter
                                               : tess_radon_set_filter)(op, TESS_FILTER_RAM_LAK);
    op->table->inverse(op, job->measurement.data, image, job->scratch, NULL);
    TESS_TRY(fit(job, image, &factor, error));
    *v = (values){.low = INFINITY, .high = -INFINITY};
    TESS_TRY(tess_device_pieces(job, image, count_of(&op->image), false, look, v, error));
    if (v->bad || !isfinite(factor))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: the measurements are too large for 32-bit floats; scale them down",
                         job->problem.measurement);
    if (v->high > v->low)
        TESS_TRY(tess_device_pieces(job, image, count_of(&op->image), false, sort, v, error));
    ends[0] = both ? fmin(ROOM * factor * tail(v, true), 0) : 0;
    ends[1] = v->high > v->low ? ROOM * factor * tail(v, false) : 0;
    return TESS_OK;
}

tess_status tess_problem_find_range(tess_reconstruct_job *job, tess_error *error)
{
    tess_problem *p = &job->problem;
    double ends[2] = {0, 1};
    if (!p->synthetic && p->physics == TESS_PHYSICS_BLUR)
        return tess_problem_look_at_blurs(job, error);
    if (p->range_from != TESS_RANGE_FROM_DATA)
        return TESS_OK;
    if (!job->op->table->inverse)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "%s: has no \"range\", and without an FFT on this device it cannot be estimated; give "
            "it: [least, largest] value of the image",
            p->name);
    values *v = tess_small_alloc(1, sizeof *v);
    if (!v)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a histogram");
    const tess_status status = estimate(job, v, ends, error);
    tess_small_free(v);
    TESS_TRY(status);
    if (!(ends[1] > 0) || !(ends[1] > 1e-30)) /* nothing was measured: any range will do */
        ends[1] = 1;
    if (ends[0] < -0.25 * ends[1])
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: its views make an image from %.4g to %.4g, but what attenuates rays is not negative; check "
            "their sign and \"flat\", or give \"range\": [least, largest value]",
            p->measurement, ends[0], ends[1]);
    p->unit = ends[1];
    p->low = ends[0] / p->unit;
    p->high = 1;
    if (p->noise >= 0 || job->settings->noise >= 0)
        job->recipe.noise /= p->unit;
    const tess_sum scaled = {.a = 1 / p->unit, .x = job->measurement.data};
    return tess_vectors_sum(&job->term.measurements, &scaled, job->measurement.data, error);
}
