/* The noise levels of a run that estimates them, as by the denoise verb: one for an image, one for each
 * slice of a volume, one for each of separate images. All are estimated before the first result is
 * written, because a result may overwrite its input. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/library/library.h"

float tess_denoiser_level(const tess_denoiser *plan, int64_t plane)
{
    return plan->level[tess_min_i64(plane, TESS_NOISE_CHANNELS - 1)];
}

bool tess_denoiser_keeps(const tess_denoiser *plan, int64_t channel)
{
    return plan->net.planes > 1 && plan->model->loaded.model.noise_map &&
           tess_denoiser_level(plan, channel) == 0;
}

/* What one estimate after another uses. */
typedef struct estimate {
    tess_noise_shape shape;
    size_t bytes; /* 0: the image is too small, or has too many channels */
    void *memory;
    float *row;
} estimate;

/* Estimates the slices [from, from + shape.depth) of `in`; UNKNOWN if that is impossible. */
static void estimate_slices(const estimate *e, const tess_strided *in, int64_t from,
                            tess_noise_result *result)
{
    *result = (tess_noise_result){.confidence = TESS_NOISE_UNKNOWN};
    if (e->bytes == 0)
        return;
    tess_noise noise;
    tess_noise_begin(&noise, &e->shape, e->memory);
    for (int64_t y = 0; y < tess_max_i64(e->shape.depth, 1) * in->height; y++) {
        const tess_run_of_pixels run = {
            .z = from + y / in->height, .y = y % in->height, .count = in->width, .channels = in->channels};
        tess_strided_read(in, &run, e->row, in->channels);
        tess_noise_row(&noise, e->row, NULL);
    }
    tess_noise_end(&noise, result);
}

/* `levels`: of each channel of the image or slice; `all`: what a channel without an estimate gets. */
static void set_levels(const tess_denoiser *plan, const tess_noise_level *channel, int channels, double all,
                       float *levels)
{
    double sum = 0;
    int known = 0;
    for (int c = 0; c < channels; c++)
        if (channel[c].confidence != TESS_NOISE_UNKNOWN)
            sum += channel[c].sigma * channel[c].sigma, known++;
    const double mean = known ? sqrt(sum / known) : all;
    for (int c = 0; c < TESS_NOISE_CHANNELS; c++)
        levels[c] =
            (float)(plan->net.planes > 1 && c < channels && channel[c].confidence != TESS_NOISE_UNKNOWN
                        ? channel[c].sigma
                        : mean);
}

static tess_status estimate_image(tess_denoiser *plan, const estimate *e, const tess_strided *in,
                                  tess_error *error)
{
    tess_noise_result noise;
    estimate_slices(e, in, 0, &noise);
    if (noise.confidence == TESS_NOISE_UNKNOWN)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "the noise level cannot be estimated from this image; give sigma on the [0,1] scale");
    set_levels(plan, noise.channel, (int)in->channels, noise.sigma, plan->level);
    for (int64_t z = 0; plan->slice_levels && z < in->depth; z++)
        set_levels(plan, &noise.slices[z * in->channels], (int)in->channels, noise.sigma,
                   plan->slice_levels + z * TESS_NOISE_CHANNELS);
    return TESS_OK;
}

static tess_status estimate_images(tess_denoiser *plan, const estimate *e, const tess_strided *in,
                                   tess_error *error)
{
    for (int64_t z = 0; z < in->depth; z++) {
        tess_noise_result noise;
        estimate_slices(e, in, z, &noise);
        if (noise.confidence == TESS_NOISE_UNKNOWN)
            return tess_fail(
                error, TESS_BAD_OPTION,
                "the noise level of image %lld, counted from 0, cannot be estimated from it; give "
                "sigma on the [0,1] scale",
                (long long)z);
        set_levels(plan, noise.channel, (int)in->channels, noise.sigma,
                   plan->slice_levels + z * TESS_NOISE_CHANNELS);
    }
    return TESS_OK;
}

tess_status tess_denoiser_estimate(tess_denoiser *plan, const tess_strided *in, tess_error *error)
{
    const bool slices = in->depth > 1 && !plan->model->loaded.model.volume,
               separate = slices && plan->settings.separate;
    estimate e = {
        .shape = {in->height, in->width, separate || in->depth == 1 ? 0 : in->depth, (int)in->channels}};
    e.bytes = in->channels <= TESS_NOISE_CHANNELS ? tess_noise_bytes(&e.shape) : 0;
    e.memory = tess_small_alloc(e.bytes > 0 ? e.bytes : 1, 1);
    e.row = tess_small_alloc((size_t)(in->width * in->channels), sizeof *e.row);
    if (slices)
        plan->slice_levels =
            tess_small_alloc((size_t)in->depth * TESS_NOISE_CHANNELS, sizeof *plan->slice_levels);
    tess_status status;
    if (!e.memory || !e.row || (slices && !plan->slice_levels))
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to estimate the noise level");
    else
        status = separate ? estimate_images(plan, &e, in, error) : estimate_image(plan, &e, in, error);
    tess_small_free(e.memory);
    tess_small_free(e.row);
    return status;
}
