/* A network for colours takes noise that the channels share for picture, and the data step amplifies what it leaves in each
 * iteration: pictures end far below their input. So the noise of the blurs is compared between the channels before the network is chosen, also
 * if its level is given. The inverse of a blur keeps the channels' correlation, so what the network gets has that of the measurement. */
#include "job/reconstruct/look/colours.h"

#include <math.h>

#include "base/mem.h"
#include "job/reconstruct/look/sampled_kernel.h"
#include "job/reconstruct/mask/hidden.h"
#include "job/reconstruct/problem/file_rows.h"
#include "tensor/noise.h"

enum { CHANNELS = TESS_TOGETHER_COLOURS };
/* Of the two channels that share most: the correlation above which the network for gray pictures, channel by channel, ends
 * better. kodim23, a disc of radius 3, noise of 1.5 of 255, of which a quarter is shared: 33.2 instead of 33.4 dB; 0.4 of it: 33.0
 * instead of 31.2 dB; a half: 33.1 instead of 27.5 dB. A half shows as 0.35 to 0.54, a quarter as 0.16 to 0.35, independent noise
 * as at most 0.2, also if it was demosaiced. */
static const double SHARED = 0.33;
/* Of the range: weaker noise is hardly amplified, since the least that is assumed is twice this; and texture, which colours share, may be
 * taken for it (a mean correlation of up to 0.62). What is left of noise in a JPEG is as weak, but correlates more. */
static const double LEAST = 0.0025, SURELY_SHARED = 0.75;
/* Slight blurs, by the sum of their kernels' squares (more than a Gaussian of 0.7 pixels, or motion over 6), leave much texture,
 * and amplify little: if they are denoised one by one without need, photographs without noise lose 5 to 10 dB. */
static const double SLIGHT = 0.15, SHARED_OF_SLIGHT = 0.5, LEAST_OF_SLIGHT = 0.005;

typedef struct looking {
    tess_problem *p;
    tess_noise_shape shape; /* of one blur: a patch must not span two */
    void *memory;           /* NULL: the picture is too small for an estimate */
    tess_noise noise;
    bool equal;
    /* sums over `known` blurs: of correlations, of those of the two channels that share most, and of levels squared */
    double shared, most, squares;
    int64_t known;
    double low, high; /* of all values, and 0 */
} looking;

static tess_status take_row(void *user, int64_t y, float *values, tess_error *error)
{
    looking *l = user;
    const tess_problem *p = l->p;
    tess_noise_result result;
    (void)error;
    l->equal = l->equal && tess_together_equal(values, sizeof *values, CHANNELS, p->width, NULL);
    if (!l->memory)
        return TESS_OK;
    for (int64_t i = 0; i < tess_problem_row(p) && tess_hidden_any(p); i++)
        if (tess_hidden_why(p, y, i / CHANNELS, values[i]) != TESS_HIDDEN_REASONS)
            values[i] = NAN;
    for (int64_t i = 0; i < tess_problem_row(p); i++) {
        l->low = fmin(l->low, (double)values[i]); /* not NaN */
        l->high = fmax(l->high, (double)values[i]);
    }
    if (y % p->height == 0)
        tess_noise_begin(&l->noise, &l->shape, l->memory);
    tess_noise_row(&l->noise, values, NULL);
    if (y % p->height < p->height - 1)
        return TESS_OK;
    tess_noise_end(&l->noise, &result);
    if (result.confidence == TESS_NOISE_UNKNOWN)
        return TESS_OK;
    l->shared += result.shared;
    l->most += result.most_shared;
    l->squares += result.sigma * result.sigma;
    l->known++;
    return TESS_OK;
}

/* Whether they share so much of their noise that the network for colours would leave it. */
static tess_status judge(const looking *l, bool *shared, tess_error *error)
{
    const tess_problem *p = l->p;
    tess_kernel_facts kernels;
    if (l->known == 0)
        return TESS_OK;
    const double mean = l->shared / (double)l->known, most = l->most / (double)l->known,
                 level = sqrt(l->squares / (double)l->known),
                 range = p->range_from == TESS_RANGE_FROM_DATA ? l->high - l->low : p->high - p->low;
    TESS_TRY(tess_kernels_look(p, &kernels, error));
    const bool slight = kernels.squares > SLIGHT;
    *shared = slight ? mean > SHARED_OF_SLIGHT && level > LEAST_OF_SLIGHT * range
                     : mean > SURELY_SHARED || (most > SHARED && level > LEAST * range);
    return TESS_OK;
}

tess_status tess_problem_find_colours(tess_problem *p, tess_error *error)
{
    looking l = {.p = p, .shape = {p->height, p->width, 1, CHANNELS, 0}, .equal = true};
    if (p->physics != TESS_PHYSICS_BLUR || p->synthetic || p->as_published || p->channels != CHANNELS)
        return TESS_OK;
    const size_t bytes = tess_noise_bytes(&l.shape);
    if (bytes > 0 && !(l.memory = tess_small_alloc(bytes, 1)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory to compare the noise of the channels");
    tess_status status = tess_problem_file_rows(p, take_row, &l, error);
    bool shared = false;
    if (status == TESS_OK)
        status = judge(&l, &shared, error);
    if (status == TESS_OK)
        p->colours = (tess_together){
            .equal = l.equal, .shared = shared, .correlation = l.known ? l.most / (double)l.known : 0};
    tess_small_free(l.memory);
    return status;
}
