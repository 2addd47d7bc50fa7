/* An image on the device against the truth on the host, row by row. */
#include <math.h>

#include "job/reconstruct.h"
#include "tensor/quality.h"

tess_status tess_reconstruct_quality(tess_reconstruct_job *job, const void *image, double *psnr, double *ssim,
                                     tess_error *error)
{
    const tess_problem *p = &job->problem;
    tess_device *device = job->engine.device;
    const int64_t samples = tess_problem_row(p), rows = tess_problem_rows(p);
    const float low = (float)p->low, high = (float)p->high;
    tess_quality quality;
    double square = 0, similar = 0;
    *psnr = NAN;
    if (ssim)
        *ssim = NAN;
    if (!job->truth)
        return TESS_OK;
    const int64_t some = p->depth > 1 ? p->height : 1; /* rows that there is room for */
    for (int64_t y = 0; y < rows; y++) {
        if (ssim && y % p->height == 0)
            tess_quality_begin(&quality, p->width, p->channels, job->lines);
        if (y % some == 0) {
            device->copy(device, job->rows[0], (const float *)image + y * samples,
                         (size_t)(some * samples) * sizeof(float), NULL);
            TESS_TRY(device->sync(device, NULL, error));
        }
        float *row = job->rows[0] + y % some * samples, *truth = job->rows[1];
        for (int64_t i = 0; i < samples; i++) {
            row[i] = fminf(fmaxf(row[i], low), high) / high;
            truth[i] = fminf(fmaxf(job->truth[y * samples + i], low), high) / high;
            const double difference = (double)row[i] - (double)truth[i];
            square += difference * difference;
        }
        if (ssim)
            tess_quality_row(&quality, row, truth);
        if (ssim && y % p->height == p->height - 1) /* the mean over slices */
            similar += tess_quality_ssim(&quality) / (double)p->depth;
    }
    const double mean = square / (double)(rows * samples);
    *psnr = -10 * log10(mean + (job->recipe.saturating_psnr ? 1e-8 : 0));
    if (ssim)
        *ssim = similar;
    return TESS_OK;
}
