/* detect_overlay.c: a picture of the cube in false colours, with the anomalies in red. Three bands, near 650, 550 and 450 nm if
 * the wavelengths are known (else spread over all bands), stretched from mean - 2 to mean + 3 standard deviations. */
#include <math.h>
#include <stdlib.h>

#include "io/image.h"
#include "job/detect/detect_job.h"
#include "tensor/samples.h"

typedef struct colours {
    int band[3];
    double low[3], high[3];
} colours;

static void choose_bands(const tess_spectral_plan *plan, const double *wavelengths, colours *c)
{
    static const double wanted[] = {650, 550, 450}, share[] = {0.75, 0.5, 0.25};
    for (int k = 0; k < 3; k++) {
        c->band[k] = (int)(share[k] * (plan->bands - 1));
        for (int b = 0; wavelengths && b < plan->bands; b++)
            if (b == 0 || fabs(wavelengths[b] - wanted[k]) < fabs(wavelengths[c->band[k]] - wanted[k]))
                c->band[k] = b;
    }
}

/* One row of samples, as values of the three bands. */
static tess_status read_row(tess_detect_job *job, int64_t row, const colours *c, float *values,
                            tess_error *error)
{
    const tess_pixel_image *size = &job->input.image[0];
    const int bands = job->plan->bands;
    const size_t sample = tess_dtype_size(size->dtype);
    char *samples = (char *)job->piece.data + (size_t)job->piece_pixels * 6;
    TESS_TRY(tess_stop_check(&job->engine.stop, error));
    uint8_t *keep = (uint8_t *)((float *)job->piece.data + job->piece_pixels);
    TESS_TRY(job->input.set.read(job->input.set.user, 0, row, 1, samples, error));
    TESS_TRY(tess_pixel_set_keep(&job->input.set, 0, row, 1, samples, keep, error));
    for (int64_t x = 0; x < size->width; x++)
        for (int k = 0; k < 3; k++)
            tess_samples_to_float(size->dtype, 1,
                                  samples + ((size_t)x * (size_t)bands + (size_t)c->band[k]) * sample, 1,
                                  &values[3 * x + k]);
    for (int64_t i = 0; i < 3 * size->width; i++)
        if (!keep[i / 3])
            values[i] = NAN;
    return TESS_OK;
}

static tess_status stretch(tess_detect_job *job, colours *c, float *values, tess_error *error)
{
    const tess_pixel_image *size = &job->input.image[0];
    double count = 0, mean[3] = {0}, square[3] = {0};
    for (int64_t row = 0; row < size->height; row++) {
        TESS_TRY(read_row(job, row, c, values, error));
        for (int64_t x = 0; x < size->width; x++) {
            const float *v = values + 3 * x;
            if (!isfinite(v[0]) || !isfinite(v[1]) || !isfinite(v[2]))
                continue;
            count++;
            for (int k = 0; k < 3; k++) { /* Welford */
                const double far = (double)v[k] - mean[k];
                mean[k] += far / count;
                square[k] += far * ((double)v[k] - mean[k]);
            }
        }
    }
    for (int k = 0; k < 3; k++) {
        const double deviation = count > 0 ? sqrt(square[k] / count) : 0;
        c->low[k] = mean[k] - 2 * deviation;
        c->high[k] = mean[k] + 3 * deviation;
    }
    return TESS_OK;
}

static void paint(const colours *c, const float *values, const float *scores, double threshold, int64_t width,
                  uint8_t *out)
{
    for (int64_t x = 0; x < width; x++) {
        for (int k = 0; k < 3; k++) {
            const double range = c->high[k] - c->low[k],
                         v = ((double)values[3 * x + k] - c->low[k]) / (range > 0 ? range : 1);
            out[3 * x + k] = (uint8_t)(255 * fmin(fmax(v, 0), 1) + 0.5); /* NaN is black */
        }
        if ((double)scores[x] >= threshold)
            out[3 * x] = 255, out[3 * x + 1] = out[3 * x + 2] = 0;
    }
}

tess_status tess_detect_overlay(tess_detect_job *job, tess_error *error)
{
    const tess_pixel_image *size = &job->input.image[0];
    const tess_image_info info = {.height = size->height,
                                  .width = size->width,
                                  .channels = 3,
                                  .rgb = true,
                                  .dtype = TESS_U8,
                                  .full_scale = 255};
    tess_writer *writer = NULL;
    colours c;
    float *values = tess_small_alloc((size_t)size->width * 3, sizeof *values);
    uint8_t *pixels = tess_small_alloc((size_t)size->width * 3, 1);
    choose_bands(job->plan, job->input.list.wavelengths, &c);
    tess_status status = values && pixels
                             ? stretch(job, &c, values, error)
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for a row of the overlay");
    if (status == TESS_OK)
        status = tess_writer_open(job->engine.memory, job->settings->overlay, &info, NULL, &writer, error);
    for (int64_t row = 0; status == TESS_OK && row < size->height; row++) {
        status = read_row(job, row, &c, values, error);
        if (status == TESS_OK)
            status = tess_detect_spool_read(job, row * size->width, size->width, job->piece.data, error);
        if (status != TESS_OK)
            break;
        paint(&c, values, job->piece.data, job->threshold, size->width, pixels);
        status = tess_writer_rows(writer, 1, pixels, error);
    }
    if (status == TESS_OK)
        status = tess_writer_commit(writer, error);
    tess_writer_close(writer);
    tess_small_free(values);
    tess_small_free(pixels);
    return status;
}
