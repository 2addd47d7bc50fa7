/* Estimates the noise of measured blurs. A blurred picture has little texture, so its noise is visible. Each blur is
 * estimated separately, because a patch must not span two pictures. If the noise of the blurs differs, each is
 * weighted: kernel and measurement are multiplied by the least level divided by the blur's level, so that all have
 * the same noise. Ranks that share the picture take the blurs in turn, and get the rows of a blur from those that have them. */
#include "job/reconstruct/look/noise.h"

#include <math.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/reconstruct/look/stripes.h"
#include "job/reconstruct/mask/hidden_rows.h"
#include "tensor/noise.h"

/* Of the range. The few conjugate gradient steps of a data step do not converge if the data is weighted more than
 * this: photographs without noise lose 3 to 6 dB at 0.002 and 6 to 15 at 0.001. */
static const double LEAST_NOISE = 0.005;
/* Noise that was saved as JPEG, demosaiced or resampled has lost its high frequencies, which the estimate is made from;
 * what is left of it is multiplied by the inverse of the blur. If means of 2 x 2 pixels have more noise than white noise
 * has, by the first ratio, the noise grows towards low frequencies, and is taken to grow once more by the root of that
 * ratio, up to the second: within a third of the truth for noise of 1.5 to 8 of 255 in photographs of quality 80 to 95. */
static const double CORRELATED = 1.25, MOST_RISE = 2;
/* of the least noise: the means of pictures without noise have texture up to this */
static const double TEXTURE = 1.25;
/* Of what the quantisation of a JPEG leaves at low frequencies: photographs of quality 25, 50 and 75 end best with 9, 5.5 and
 * 3.5 of 255, which are 1.2 to 1.8 of it; half of that costs 2 to 5 dB, twice as much 0.5 dB. Above the limit (of the range) faint pictures lose more. */
static const double QUANTISED = 1.9, MOST_QUANTISED = 0.0235;
/* Of the noise: if the least that is assumed is more, it matters. */
static const double FAR_BELOW = 3;
/* Of the stripes' level: photographs end best with a noise of 2 to 3 times that. If it is less than the second ratio of the noise,
 * texture may look so. */
static const double STRIPES = 2.5, PLAIN = 1.5;
/* ratio of the largest to the least level: less is within the error of the estimates */
static const double DIFFER = 1.25;

/* What the quantisation of a JPEG is taken for; 0 if the file is none. */
static double quantisation(const tess_problem *p)
{
    return fmin(QUANTISED * p->quantised / p->unit, MOST_QUANTISED * p->high);
}

double tess_problem_least_noise(const tess_problem *p)
{
    return fmax(LEAST_NOISE * p->high, quantisation(p));
}

/* A copy of a blur, smaller by `by`: the means of squares of so many pixels. */
static tess_noise_shape smaller(const tess_noise_shape *shape, int64_t by)
{
    return (tess_noise_shape){shape->height / by, shape->width / by, 1, shape->channels, 0};
}

/* A blur that is looked at, and the rank that does. */
typedef struct looked_at {
    const tess_problem *p;
    tess_workspace *w;
    int64_t blur;
    int by;
    bool here;
} looked_at;

/* Row y is in w->host.rows[0] of the rank that looks at the blur. */
static tess_status take_row(const looked_at *l, int64_t y, tess_error *error)
{
    const tess_problem *p = l->p;
    tess_device *device = l->w->device;
    const int64_t samples = tess_problem_row(p), own = tess_problem_own(p),
                  inside = y - tess_problem_first(p);
    const size_t bytes = (size_t)samples * sizeof(float);
    const bool mine = inside >= 0 && inside < own;
    float *row = l->w->host.rows[0];
    int owner = 0;
    if (mine) {
        device->memory->copy(device, row,
                             (const float *)l->w->measurement.data + (l->blur * own + inside) * samples,
                             bytes, NULL);
        TESS_TRY(tess_share_keep(p->share, device->streams->sync(device, NULL, error), error));
        TESS_TRY(tess_share_keep(p->share, tess_hidden_blank(p, l->w, l->blur, inside, row, error), error));
    }
    if (mine == l->here)
        return TESS_OK;
    while (y >= tess_problem_shown(p, p->share, owner + 1))
        owner++;
    const tess_dist_transfer move = {.peer = mine ? l->by : owner,
                                     .send = row,
                                     .send_bytes = mine ? bytes : 0,
                                     .receive = row,
                                     .receive_bytes = mine ? 0 : bytes};
    TESS_TRY(tess_dist_exchange_begin(l->w->exchange, &move, 1, error));
    return tess_dist_exchange_end(l->w->exchange, error);
}

/* Adds the row of means that begins with row y. */
static tess_status add_row(const looked_at *l, int64_t y, int64_t by, tess_noise *noise, tess_error *error)
{
    const tess_problem *p = l->p;
    const int64_t channels = p->channels, width = p->width / by;
    float *const row = l->w->host.rows[0], *const mean = l->w->host.rows[1];
    for (int64_t k = 0; k < by; k++) {
        TESS_TRY(take_row(l, y + k, error));
        for (int64_t i = 0; i < width * channels && l->here; i++) {
            const float *at = row + i / channels * by * channels + i % channels;
            float sum = k > 0 ? mean[i] : 0;
            for (int64_t j = 0; j < by; j++)
                sum += at[j * channels] / (float)(by * by);
            mean[i] = sum;
        }
    }
    if (l->here)
        tess_noise_row(noise, mean, NULL);
    return TESS_OK;
}

/* Collective. The level that white noise would have to show as much as there is in the means of `by` x `by` pixels; negative if
 * there is no estimate. */
static tess_status level_of(const tess_problem *p, tess_workspace *w, int64_t i,
                            const tess_noise_shape *whole, int64_t by, void *memory, double *level,
                            tess_noise_confidence *confidence, tess_error *error)
{
    const tess_noise_shape shape = smaller(whole, by);
    const bool many = tess_share_many(p->share);
    const int rank = many ? (int)(i % p->share->dist->size) : 0;
    const looked_at l = {p, w, i, rank, !many || p->share->dist->rank == rank};
    tess_noise noise;
    tess_noise_result result = {0};
    tess_noise_begin(&noise, &shape, memory);
    for (int64_t y = 0; y < shape.height; y++)
        TESS_TRY(tess_share_keep(p->share, add_row(&l, y * by, by, &noise, error), error));
    if (l.here)
        tess_noise_end(&noise, &result);
    double figures[2] = {result.sigma, (double)result.confidence};
    if (many)
        TESS_TRY(tess_dist_broadcast(p->share->dist, rank, figures, sizeof figures, error));
    *confidence = (tess_noise_confidence)figures[1];
    *level = *confidence == TESS_NOISE_UNKNOWN ? -1 : (double)by * figures[0];
    return TESS_OK;
}

/* The level of one blur; negative if there is no estimate. `rise`: the largest ratio of a level to that of the pixels; `found`: the
 * largest level before it is raised to the least. */
static tess_status noise_of(const tess_problem *p, tess_workspace *w, int64_t i,
                            const tess_noise_shape *shape, void *memory, double *level, double *rise,
                            double *found, tess_noise_confidence *confidence, tess_error *error)
{
    const tess_noise_shape half = smaller(shape, 2);
    tess_noise_confidence sure, again;
    double coarse;
    TESS_TRY(level_of(p, w, i, shape, 1, memory, level, &sure, error));
    if (*level < 0)
        return TESS_OK;
    const double pixels = fmax(*level, tess_problem_least_noise(p));
    if (sure == TESS_NOISE_ROUGH && tess_noise_bytes(&half) > 0) {
        TESS_TRY(level_of(p, w, i, shape, 2, memory, &coarse, &again, error));
        const double risen = coarse * fmin(sqrt(coarse / fmax(*level, 1e-30)), MOST_RISE);
        if (coarse > CORRELATED * *level && risen > TEXTURE * LEAST_NOISE * p->high)
            *level = risen;
    }
    *found = fmax(*found, *level);
    *level = fmax(*level, tess_problem_least_noise(p));
    *rise = fmax(*rise, *level / pixels);
    *confidence = sure < *confidence ? sure : *confidence;
    return TESS_OK;
}

/* Sets the noise from the levels of all blurs, and weights if they differ. */
static void conclude(tess_problem *p, tess_recipe *recipe, const tess_workspace *w, const tess_common *common,
                     bool constant, double *levels, double rise, double found,
                     tess_noise_confidence confidence)
{
    double sum = 0, least = INFINITY, largest = 0;
    int64_t known = 0;
    for (int64_t i = 0; i < p->count; i++)
        if (levels[i] > 0) {
            sum += levels[i] * levels[i], known++;
            least = fmin(least, levels[i]), largest = fmax(largest, levels[i]);
        }
    if (known == 0)
        return;
    const bool differ = largest > DIFFER * least && w->op->table->kernel,
               rough = confidence == TESS_NOISE_ROUGH;
    recipe->noise = differ ? least : sqrt(sum / (double)known);
    recipe->noise_from = TESS_NOISE_FROM_DATA;
    recipe->noise_of_pixels = recipe->noise / rise;
    recipe->least_noise = found < LEAST_NOISE * p->high && recipe->noise <= LEAST_NOISE * p->high;
    for (int64_t i = 0; differ && i < p->count; i++)
        levels[i] = levels[i] > 0 ? least / levels[i] : least / largest;
    if (differ)
        p->weights = levels;
    if (found > 0 && FAR_BELOW * found < LEAST_NOISE * p->high && !(p->quantised > 0)) {
        tess_note(common, p->range_from == TESS_RANGE_FROM_GIVEN ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL,
                  "%s: its noise is about %.3g, but %.3g is assumed, the least for this range (0.005 of it): "
                  "fainter details are lost; a smaller \"range\" shows them",
                  p->measurement, found * p->unit, recipe->noise * p->unit);
        return;
    }
    tess_note(common, rough ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL, "%s: noise %.4g%s, estimated%s",
              p->measurement, recipe->noise * p->unit,
              differ ? " in the best of the blurs, which differ" : "",
              recipe->noise <= tess_problem_least_noise(p) && p->quantised > 0 &&
                      recipe->noise > LEAST_NOISE * p->high
                  ? " from the quantisation of a JPEG; give \"noise\" where it is known"
              : !rough   ? ""
              : constant ? " roughly: all its values are equal; give \"noise\" where it is known"
                         : " roughly: few flat areas, or noise that is not white (demosaiced, "
                           "resampled, JPEG); give \"noise\" where it is known");
}

/* Whatever the levels say: stripes cannot be averaged along their length. A noise that is given stays. */
static void raise_for_stripes(const tess_problem *p, tess_recipe *recipe, const tess_common *common,
                              double stripes)
{
    const double noise = STRIPES * stripes;
    const bool given = recipe->noise_from == TESS_NOISE_FROM_GIVEN;
    if (recipe->noise_from == TESS_NOISE_FROM_DEFAULT || !(noise > PLAIN * recipe->noise))
        return;
    if (!given) {
        recipe->noise = recipe->noise_of_pixels = noise;
        recipe->least_noise = false;
    }
    tess_note(common, TESS_NOTE_WARNING,
              "%s: its rows or columns have stripes of %.3g, as from a camera's amplifiers; %s %.3g: remove "
              "them first for a sharper picture",
              p->measurement, stripes * p->unit, given ? "they need a \"noise\" of" : "the noise is taken as",
              noise * p->unit);
}

/* Who gives the noise of a camera means what was there before the file was saved. */
static void raise_for_quantisation(const tess_problem *p, tess_recipe *recipe, const tess_common *common)
{
    const double noise = quantisation(p);
    if (recipe->noise_from != TESS_NOISE_FROM_GIVEN || !(recipe->noise < noise))
        return;
    tess_note(common, TESS_NOTE_WARNING,
              "%s: \"noise\" is %.3g, but the quantisation of this JPEG counts as %.3g, which is used",
              p->measurement, recipe->noise * p->unit, noise * p->unit);
    recipe->given_noise = recipe->noise;
    recipe->noise = recipe->noise_of_pixels = noise;
    recipe->noise_from = TESS_NOISE_FROM_DATA;
}

tess_status tess_problem_doubt_noise(const tess_problem *p, tess_recipe *recipe, tess_workspace *w,
                                     const tess_common *common, tess_error *error)
{
    double stripes;
    if (p->as_published)
        return TESS_OK;
    raise_for_quantisation(p, recipe, common);
    TESS_TRY(tess_problem_find_stripes(p, w, &stripes, error));
    raise_for_stripes(p, recipe, common, stripes);
    return TESS_OK;
}

static tess_noise_shape shape_of(const tess_problem *p)
{
    return (tess_noise_shape){p->height, p->width, 1, (int)tess_min_i64(p->channels, TESS_NOISE_CHANNELS + 1),
                              0};
}

size_t tess_problem_blur_noise_bytes(const tess_problem *p, const tess_recipe *recipe)
{
    if (p->physics != TESS_PHYSICS_BLUR || p->synthetic || recipe->noise_from != TESS_NOISE_FROM_DEFAULT)
        return 0;
    const tess_noise_shape shape = shape_of(p), half = smaller(&shape, 2);
    const size_t whole = tess_noise_bytes(&shape), reduced = tess_noise_bytes(&half);
    return whole == 0 || whole > reduced ? whole : reduced;
}

tess_status tess_problem_find_noise(tess_problem *p, tess_recipe *recipe, tess_workspace *w,
                                    const tess_common *common, bool constant, tess_error *error)
{
    const tess_noise_shape shape = shape_of(p);
    const size_t bytes = tess_problem_blur_noise_bytes(p, recipe);
    tess_block block = {0};
    if (bytes == 0)
        return TESS_OK;
    double *levels = tess_small_alloc((size_t)p->count, sizeof *levels);
    tess_noise_confidence confidence = TESS_NOISE_SURE;
    double rise = 1, found = 0;
    tess_status status =
        levels ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to estimate the noise");
    if (status == TESS_OK)
        status = tess_block_alloc(w->engine->memory, &block, TESS_MEM_HOST, bytes, error);
    status = tess_share_agree(p->share, status, error);
    for (int64_t i = 0; i < p->count && status == TESS_OK; i++) {
        status = tess_share_agree(p->share, tess_stop_check(&w->engine->stop, error), error);
        if (status == TESS_OK)
            status = noise_of(p, w, i, &shape, block.data, &levels[i], &rise, &found, &confidence, error);
    }
    if (status == TESS_OK)
        conclude(p, recipe, w, common, constant, levels, rise, found, confidence);
    tess_block_free(&block);
    if (!p->weights)
        tess_small_free(levels);
    return status;
}

double tess_problem_weight(const tess_problem *p, int64_t i)
{
    return p->weights ? p->weights[i] : 1;
}

static void scale(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    const double *weight = user;
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)(*weight * (double)values[i]);
}

tess_status tess_problem_weigh(const tess_problem *p, tess_workspace *w, tess_error *error)
{
    tess_operator *op = w->op;
    for (int64_t i = 0; i < p->count; i++) {
        int64_t floats;
        float *kernel = op->table->kernel(op, i, &floats),
              *measured = (float *)w->measurement.data + i * op->measurement.stride_n;
        TESS_TRY(tess_workspace_pieces(w, kernel, floats, true, scale, &p->weights[i], error));
        TESS_TRY(
            tess_workspace_pieces(w, measured, op->measurement.stride_n, true, scale, &p->weights[i], error));
    }
    return TESS_OK;
}
