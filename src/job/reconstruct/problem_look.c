/* Measured blurs whose range or noise is not given: both are taken from the measurements.
 *
 * Floats that look like an image of [0, 1] with noise are that; others reach from 0, or their least value, to their
 * largest. problem_noise.c estimates the noise. */
#include <math.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/reconstruct/reconstruct.h"

static const double MOST_OUTSIDE = 0.02; /* of the values of an image of [0, 1], beyond -0.5 .. 1.5 */
static const double SHARE_OF_TYPE =
    0.25; /* of an integer type's maximum, below which "range" is worth giving */

/* Floats that reach less far are in units of their own. */
static const double LEAST_OF_ONE = 0.25;

typedef struct extremes {
    double low, high;
    int64_t count, outside;
    float unit;
    double offset;
} extremes;

static void look(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    extremes *e = user;
    for (int64_t i = 0; i < count; i++) {
        const double v = (double)values[i];
        e->low = fmin(e->low, v);
        e->high = fmax(e->high, v);
        e->outside += v < -0.2 || v > 1.5;
    }
    e->count += count;
}

static void scale(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    const extremes *e = user;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)values[i] - e->offset) / e->unit;
}

static bool looks_like_one(const extremes *e)
{
    return e->low >= -2 && e->high <= 3 && (double)e->outside <= MOST_OUTSIDE * (double)e->count;
}

static tess_status find_range(tess_reconstruct_job *job, int64_t count, extremes *e, tess_error *error)
{
    tess_problem *p = &job->problem;
    if (p->range_from == TESS_RANGE_FROM_TYPE) {
        if (e->high > 0 && e->high < SHARE_OF_TYPE)
            tess_note(&job->settings->common, TESS_NOTE_WARNING,
                      "%s: its largest value is %g, of a range up to %g, which is that of its type; give "
                      "\"range\": [0, %g], or what fits",
                      p->measurement, e->high * p->unit, p->unit, e->high * p->unit);
        return TESS_OK;
    }
    if (p->range_from != TESS_RANGE_FROM_DATA)
        return TESS_OK;
    if (p->floats && looks_like_one(e) && e->high - fmin(e->low, 0) >= LEAST_OF_ONE) {
        p->range_from = TESS_RANGE_FROM_DEFAULT;
        return TESS_OK;
    }
    /* From 0 where the data do, else with room for what is darker than its blurred copies. */
    const double span = e->high - e->low;
    e->offset = e->low < 0 || e->low > 0.5 * e->high ? e->low - 0.1 * span : 0;
    const double unit =
        e->high - e->offset >= 1e-30 ? e->high - e->offset : 1; /* a constant: any unit will do */
    p->unit = unit;
    p->offset = e->offset;
    p->low = 0;
    p->high = 1;
    if (p->noise >= 0 || job->settings->noise >= 0)
        job->recipe.noise /= unit;
    e->unit = (float)unit;
    return tess_device_pieces(job, job->measurement.data, count, true, scale, e, error);
}

tess_status tess_problem_look_at_blurs(tess_reconstruct_job *job, tess_error *error)
{
    const tess_tensor *m = &job->op->measurement;
    const int64_t count = m->n * m->h * m->w * m->c;
    extremes e = {.low = INFINITY, .high = -INFINITY, .unit = 1};
    TESS_TRY(tess_device_pieces(job, job->measurement.data, count, false, look, &e, error));
    TESS_TRY(find_range(job, count, &e, error));
    return job->recipe.noise_from == TESS_NOISE_FROM_DEFAULT ? tess_problem_find_noise(job, error) : TESS_OK;
}
