/* quality.h: PSNR and SSIM of rows that come from top to bottom, so that neither image need be held. Values
 * are clamped to [0, 1] first. SSIM (Wang et al., 2004): Gaussian window of 11 taps, sigma 1.5, k 0.01 and
 * 0.03, over the positions where the window is inside the image, mean over channels. */
#ifndef TESS_TENSOR_QUALITY_H
#define TESS_TENSOR_QUALITY_H

#include <stddef.h>
#include <stdint.h>

enum { TESS_SSIM_TAPS = 11, TESS_SSIM_FIELDS = 5 };

typedef struct tess_quality {
    int64_t width, channels, rows; /* rows: seen so far */
    double square_error, ssim;
    int64_t values, positions;
    float *lines; /* the last 11 rows of the five filtered products; the caller's memory */
} tess_quality;

/* What `lines` must have. */
size_t tess_quality_bytes(int64_t width, int64_t channels);
void tess_quality_begin(tess_quality *quality, int64_t width, int64_t channels, void *lines);
/* One row of width * channels values each. */
void tess_quality_row(tess_quality *quality, const float *result, const float *truth);
double tess_quality_psnr(const tess_quality *quality); /* infinite when equal */
double tess_quality_ssim(const tess_quality *quality); /* NaN when the image is smaller than the window */

#endif
