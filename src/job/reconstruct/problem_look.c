/* Measured blurs whose range or noise is not given: both are taken from the measurements.
 *
 * Floats that look like an image of [0, 1] with noise are that; others reach from 0, or their least value, to their
 * largest. A blurred picture has little texture, so that its noise shows; each blur is looked at by itself, because rows
 * of two pictures make no patch. */
#include "job/reconstruct/problem_look.h"

#include <math.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "tensor/noise.h"

static const double MOST_OUTSIDE = 0.02; /* of the values of an image of [0, 1], beyond -0.5 .. 1.5 */
/* Of the range. The few conjugate gradients of a data step do not reach data that is trusted more than this: photographs
 * without noise lose 3 to 6 dB at 0.002 and 6 to 15 at 0.001. */
static const double LEAST_NOISE = 0.005;
static const double SHARE_OF_TYPE =
    0.25; /* of an integer type's maximum, below which "range" is worth giving */

/* Floats that reach less far are in units of their own. */
static const double LEAST_OF_ONE = 0.25;

typedef struct scaling {
    float unit;
    double offset;
} scaling;

static void scale(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    const scaling *by = user;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)((double)values[i] - by->offset) / by->unit;
}

typedef struct looking {
    tess_problem *problem;
    tess_recipe *recipe;
    tess_workspace *w;
    const tess_common *common;
} looking;

static bool looks_like_one(const tess_extremes *e)
{
    return e->low >= -2 && e->high <= 3 && (double)e->outside <= MOST_OUTSIDE * (double)e->count;
}

static tess_status find_range(const looking *l, const tess_extremes *e, tess_error *error)
{
    tess_problem *p = l->problem;
    if (p->range_from == TESS_RANGE_FROM_TYPE) {
        if (e->high > 0 && e->high < SHARE_OF_TYPE)
            tess_note(l->common, TESS_NOTE_WARNING,
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
    p->offset = e->low < 0 || e->low > 0.5 * e->high ? e->low - 0.1 * span : 0;
    p->unit = e->high - p->offset >= 1e-30 ? e->high - p->offset : 1; /* a constant: any unit will do */
    p->low = 0;
    p->high = 1;
    if (l->recipe->noise_from == TESS_NOISE_FROM_GIVEN)
        l->recipe->noise /= p->unit;
    scaling by = {(float)p->unit, p->offset};
    return tess_workspace_pieces(l->w, l->w->measurement.data, e->count, true, scale, &by, error);
}

/* Adds the square of one blur's noise level, where there is an estimate. */
static tess_status add_noise_of(const looking *l, int64_t i, const tess_noise_shape *shape, void *memory,
                                tess_noise_result *sum, int64_t *known, tess_error *error)
{
    const tess_problem *p = l->problem;
    tess_device *device = l->w->engine->device;
    float *row = l->w->host.rows[0];
    const int64_t samples = tess_problem_row(p);
    const float *from = (const float *)l->w->measurement.data + i * p->height * samples;
    tess_noise noise;
    tess_noise_result result;
    tess_noise_begin(&noise, shape, memory);
    for (int64_t y = 0; y < p->height; y++) {
        device->copy(device, row, from + y * samples, (size_t)samples * sizeof *from, NULL);
        TESS_TRY(device->sync(device, NULL, error));
        tess_noise_row(&noise, row, NULL);
    }
    tess_noise_end(&noise, &result);
    if (result.confidence == TESS_NOISE_UNKNOWN)
        return TESS_OK;
    sum->sigma += result.sigma * result.sigma;
    sum->confidence = result.confidence < sum->confidence ? result.confidence : sum->confidence;
    ++*known;
    return TESS_OK;
}

static tess_status find_noise(const looking *l, tess_error *error)
{
    const tess_problem *p = l->problem;
    const tess_noise_shape shape = {p->height, p->width, 1,
                                    (int)tess_min_i64(p->channels, TESS_NOISE_CHANNELS + 1)};
    const size_t bytes = tess_noise_bytes(&shape);
    if (bytes == 0)
        return TESS_OK;
    void *memory = tess_small_alloc(bytes, 1);
    if (!memory)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to estimate the noise");
    tess_noise_result sum = {.confidence = TESS_NOISE_SURE};
    int64_t known = 0;
    tess_status status = TESS_OK;
    for (int64_t i = 0; i < p->count && status == TESS_OK; i++) {
        status = tess_stop_check(&l->w->engine->stop, error);
        if (status == TESS_OK)
            status = add_noise_of(l, i, &shape, memory, &sum, &known, error);
    }
    tess_small_free(memory);
    TESS_TRY(status);
    if (known == 0)
        return TESS_OK;
    l->recipe->noise = fmax(sqrt(sum.sigma / (double)known), LEAST_NOISE * p->high);
    l->recipe->noise_from = TESS_NOISE_FROM_DATA;
    const bool rough = sum.confidence == TESS_NOISE_ROUGH;
    tess_note(l->common, rough ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL, "%s: noise %.4g, estimated%s",
              p->measurement, l->recipe->noise * p->unit,
              rough ? " roughly: few flat areas; give \"noise\" where it is known" : "");
    return TESS_OK;
}

tess_status tess_problem_look_at_blurs(tess_problem *problem, tess_recipe *recipe, tess_workspace *w,
                                       const tess_common *common, tess_error *error)
{
    const looking l = {problem, recipe, w, common};
    tess_extremes seen;
    TESS_TRY(tess_workspace_extremes(w, w->measurement.data, tess_workspace_values(&w->op->measurement),
                                     &seen, error));
    TESS_TRY(find_range(&l, &seen, error));
    return recipe->noise_from == TESS_NOISE_FROM_DEFAULT ? find_noise(&l, error) : TESS_OK;
}
