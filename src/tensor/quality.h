/* quality.h: PSNR and SSIM from rows given from top to bottom, so neither image need be in memory. Values are
 * first clamped to [0, 1]. SSIM (Wang et al., 2004) uses a Gaussian window of 11 taps, sigma 1.5, k 0.01 and
 * 0.03, over the positions where the window lies inside the image, and is averaged over channels. NaN in the truth
 * is a hole: the sample does not count for PSNR, nor any window that contains it for SSIM. */
#ifndef TESS_TENSOR_QUALITY_H
#define TESS_TENSOR_QUALITY_H

#include <stddef.h>
#include <stdint.h>

enum { TESS_SSIM_TAPS = 11, TESS_SSIM_FIELDS = 5 };

typedef struct tess_quality {
    int64_t width, channels, rows; /* rows: seen so far */
    double square_error, ssim;
    int64_t values, positions;
    int64_t outside; /* values of the truth that were clamped */
    float *lines;    /* the last 11 rows of the five filtered products; owned by the caller */
} tess_quality;

/* Size of `lines`. */
size_t tess_quality_bytes(int64_t width, int64_t channels);
void tess_quality_begin(tess_quality *quality, int64_t width, int64_t channels, void *lines);
/* Adds one row of width * channels values of each image. */
void tess_quality_row(tess_quality *quality, const float *result, const float *truth);
double tess_quality_psnr(const tess_quality *quality); /* infinite when equal; NaN when all are holes */
double
tess_quality_ssim(const tess_quality *quality); /* NaN when no window lies inside the image without a hole */

#endif
