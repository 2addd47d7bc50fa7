#include "tensor/quality.h"

#include <math.h>
#include <stdbool.h>

/* exp(-x^2 / (2 * 1.5^2)) for x = -5 .. 5, normalised to the sum 1. */
static const float window[TESS_SSIM_TAPS] = {0.00102838f, 0.00759876f, 0.03600077f, 0.10936069f,
                                             0.21300553f, 0.26601172f, 0.21300553f, 0.10936069f,
                                             0.03600077f, 0.00759876f, 0.00102838f};

/* Rounding takes values beyond the ends without meaning. */
static const float TOLERANCE = 1e-5f;

static int64_t columns(const tess_quality *quality)
{
    return (quality->width - TESS_SSIM_TAPS + 1) * quality->channels;
}

size_t tess_quality_bytes(int64_t width, int64_t channels)
{
    int64_t inside = width - TESS_SSIM_TAPS + 1;
    return inside > 0 ? (size_t)(inside * channels) * TESS_SSIM_TAPS * TESS_SSIM_FIELDS * sizeof(float) : 0;
}

void tess_quality_begin(tess_quality *quality, int64_t width, int64_t channels, void *lines)
{
    *quality = (tess_quality){.width = width, .channels = channels, .lines = lines};
}

static float clamp(float value)
{
    return value > 1 ? 1 : value > 0 ? value : 0;
}

/* NaN stays, and so marks all that is computed from it. */
static float clamp_truth(float value)
{
    return isnan(value) ? value : clamp(value);
}

/* Filters x, y, x^2, y^2 and xy along one row. */
static void filter_row(const tess_quality *quality, const float *a, const float *b, float *line)
{
    const int64_t count = columns(quality), step = quality->channels;
    for (int64_t i = 0; i < count; i++) {
        float sums[TESS_SSIM_FIELDS] = {0};
        for (int k = 0; k < TESS_SSIM_TAPS; k++) {
            float x = clamp(a[i + k * step]), y = clamp_truth(b[i + k * step]), w = window[k];
            sums[0] += w * x;
            sums[1] += w * y;
            sums[2] += w * x * x;
            sums[3] += w * y * y;
            sums[4] += w * x * y;
        }
        for (int f = 0; f < TESS_SSIM_FIELDS; f++)
            line[f * count + i] = sums[f];
    }
}

/* Adds the SSIM at every position of the row whose window ends with the newest line. */
static void add_positions(tess_quality *quality)
{
    const double c1 = 0.01 * 0.01, c2 = 0.03 * 0.03;
    const int64_t count = columns(quality);
    for (int64_t i = 0; i < count; i++) {
        double sums[TESS_SSIM_FIELDS] = {0};
        for (int k = 0; k < TESS_SSIM_TAPS; k++) {
            int64_t slot = (quality->rows + 1 + k) % TESS_SSIM_TAPS; /* oldest first */
            const float *line = quality->lines + slot * TESS_SSIM_FIELDS * count;
            for (int f = 0; f < TESS_SSIM_FIELDS; f++)
                sums[f] += (double)window[k] * line[f * count + i];
        }
        double x = sums[0], y = sums[1], xx = sums[2] - x * x, yy = sums[3] - y * y, xy = sums[4] - x * y;
        if (isnan(y)) /* a hole */
            continue;
        quality->ssim += (2 * x * y + c1) * (2 * xy + c2) / ((x * x + y * y + c1) * (xx + yy + c2));
        quality->positions++;
    }
}

void tess_quality_row(tess_quality *quality, const float *result, const float *truth)
{
    const int64_t count = quality->width * quality->channels;
    double sum = 0;
    int64_t holes = 0, outside = 0;
    for (int64_t i = 0; i < count; i++) {
        const bool hole = isnan(truth[i]);
        double d = hole ? 0 : (double)clamp(result[i]) - (double)clamp(truth[i]);
        sum += d * d;
        holes += hole;
        outside += truth[i] < -TOLERANCE || truth[i] > 1 + TOLERANCE;
    }
    quality->outside += outside;
    quality->square_error += sum;
    quality->values += count - holes;
    if (columns(quality) > 0) {
        int64_t slot = quality->rows % TESS_SSIM_TAPS;
        filter_row(quality, result, truth, quality->lines + slot * TESS_SSIM_FIELDS * columns(quality));
        if (quality->rows + 1 >= TESS_SSIM_TAPS)
            add_positions(quality);
    }
    quality->rows++;
}

double tess_quality_psnr(const tess_quality *quality)
{
    if (quality->values == 0)
        return NAN;
    return -10 * log10(quality->square_error / (double)quality->values);
}

double tess_quality_ssim(const tess_quality *quality)
{
    return quality->positions ? quality->ssim / (double)quality->positions : NAN;
}
