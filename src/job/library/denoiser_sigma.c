/* The noise level of a run: given, or estimated from the image as by the denoise verb. */
#include "base/checked.h"
#include "job/library/library.h"

float tess_denoiser_level(const tess_denoiser *plan, int64_t plane)
{
    return plan->level[tess_min_i64(plane, TESS_NOISE_CHANNELS - 1)];
}

static void set_levels(tess_denoiser *plan, const tess_noise_result *noise)
{
    for (int c = 0; c < TESS_NOISE_CHANNELS; c++)
        plan->level[c] = (float)(plan->net.planes > 1 && noise->channel[c].confidence != TESS_NOISE_UNKNOWN
                                     ? noise->channel[c].sigma
                                     : noise->sigma);
}

tess_status tess_denoiser_estimate(tess_denoiser *plan, const tess_strided *in, tess_error *error)
{
    const tess_noise_shape shape = {in->height, in->width, in->depth > 1 ? in->depth : 0, (int)in->channels};
    const size_t bytes = in->channels <= TESS_NOISE_CHANNELS ? tess_noise_bytes(&shape) : 0;
    tess_noise_result result = {.confidence = TESS_NOISE_UNKNOWN};
    if (bytes > 0) {
        const int64_t row = in->width * in->channels;
        void *memory = tess_small_alloc(bytes, 1);
        float *values = tess_small_alloc((size_t)row, sizeof *values);
        if (!memory || !values) {
            tess_small_free(memory);
            tess_small_free(values);
            return tess_fail(error, TESS_NO_MEMORY, "no memory to estimate the noise level");
        }
        tess_noise noise;
        tess_noise_begin(&noise, &shape, memory);
        for (int64_t y = 0; y < in->depth * in->height; y++) {
            const tess_run_of_pixels run = {
                .z = y / in->height, .y = y % in->height, .count = in->width, .channels = in->channels};
            tess_strided_read(in, &run, values, in->channels);
            tess_noise_row(&noise, values, NULL);
        }
        tess_noise_end(&noise, &result);
        tess_small_free(memory);
        tess_small_free(values);
    }
    if (result.confidence == TESS_NOISE_UNKNOWN)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "the noise level cannot be estimated from this image; give sigma on the [0,1] scale");
    set_levels(plan, &result);
    return TESS_OK;
}
