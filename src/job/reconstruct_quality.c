/* An image on the device against the truth on the host: row by row, or slice by slice of a volume. */
#include <math.h>

#include "base/checked.h"
#include "job/reconstruct.h"
#include "tensor/quality.h"

enum { PARTS = 64 }; /* of a slice; the order of a sum must not depend on threads */

/* Some rows, brought to [0, 1]. */
typedef struct rows_job {
    const float *truth_from;
    float *values, *truth;
    int64_t rows, samples;
    float low, high;
    double square[PARTS];
} rows_job;

static void compare(void *arg, int64_t part, int thread)
{
    (void)thread;
    rows_job *job = arg;
    const int64_t parts = tess_min_i64(job->rows, PARTS), from = job->rows * part / parts * job->samples,
                  to = job->rows * (part + 1) / parts * job->samples;
    double square = 0;
    for (int64_t i = from; i < to; i++) {
        job->values[i] = fminf(fmaxf(job->values[i], job->low), job->high) / job->high;
        job->truth[i] = fminf(fmaxf(job->truth_from[i], job->low), job->high) / job->high;
        const double difference = (double)job->values[i] - (double)job->truth[i];
        square += difference * difference;
    }
    job->square[part] = square;
}

tess_status tess_reconstruct_quality(tess_reconstruct_job *job, const void *image, double *psnr, double *ssim,
                                     tess_error *error)
{
    const tess_problem *p = &job->problem;
    tess_device *device = job->engine.device;
    const int64_t samples = tess_problem_row(p), rows = tess_problem_rows(p);
    const int64_t some = p->depth > 1 ? p->height : 1; /* rows that there is room for */
    tess_quality quality;
    double square = 0, similar = 0;
    *psnr = NAN;
    if (ssim)
        *ssim = NAN;
    if (!job->truth)
        return TESS_OK;
    for (int64_t first = 0; first < rows; first += some) {
        rows_job part = {.truth_from = job->truth + first * samples,
                         .values = job->rows[0],
                         .truth = job->rows[1],
                         .rows = some,
                         .samples = samples,
                         .low = (float)p->low,
                         .high = (float)p->high};
        device->copy(device, part.values, (const float *)image + first * samples,
                     (size_t)(some * samples) * sizeof(float), NULL);
        TESS_TRY(device->sync(device, NULL, error));
        const int64_t parts = tess_min_i64(some, PARTS);
        tess_pool_run(job->engine.host, parts, compare, &part);
        for (int64_t i = 0; i < parts; i++)
            square += part.square[i];
        if (!ssim)
            continue;
        if (first % p->height == 0)
            tess_quality_begin(&quality, p->width, p->channels, job->lines);
        for (int64_t y = 0; y < some; y++)
            tess_quality_row(&quality, part.values + y * samples, part.truth + y * samples);
        if ((first + some) % p->height == 0) /* the mean over slices */
            similar += tess_quality_ssim(&quality) / (double)p->depth;
    }
    const double mean = square / (double)(rows * samples);
    *psnr = -10 * log10(mean + (job->recipe.saturating_psnr ? 1e-8 : 0));
    if (ssim)
        *ssim = similar;
    return TESS_OK;
}
