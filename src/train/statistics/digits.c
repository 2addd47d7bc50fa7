#include "train/statistics/digits.h"

#include <math.h>

#include "base/checked.h"

enum { PIXELS = 1024, LEAST = 16 };
/* Of what a band varies by; and of a band's mean: less is the rounding of doubles, in a band that does not vary. */
static const double MOST_ERROR = 2e-2, LEAST_SPREAD = 1e-12;

/* Sums over the pixels of one band that have a value. */
typedef struct band_sums {
    int64_t count;
    double mean, spread, error; /* the last two: sums of squares */
} band_sums;

static double sample_at(tess_dtype dtype, const void *samples, int64_t at)
{
    if (dtype == TESS_F64)
        return ((const double *)samples)[at];
    return dtype == TESS_I32 ? (double)((const int32_t *)samples)[at]
                             : (double)((const uint32_t *)samples)[at];
}

static band_sums sums_of(const tess_pixel_image *image, int bands, const void *samples, int64_t pixels,
                         const uint8_t *keep, int b)
{
    band_sums s = {0};
    for (int64_t i = 0; i < pixels; i += tess_ceil_div(pixels, PIXELS)) {
        const double v = sample_at(image->dtype, samples, i * bands + b), rounded = (float)v;
        if ((keep && !keep[i]) || !isfinite(rounded) || (image->has_nodata && v == image->nodata))
            continue;
        const double step = v - s.mean;
        s.mean += step / (double)++s.count;
        s.spread += step * (v - s.mean);
        s.error += (rounded - v) * (rounded - v);
    }
    return s;
}

tess_status tess_pixel_digits(const tess_pixel_image *image, int bands, const void *samples, int64_t pixels,
                              const uint8_t *keep, tess_error *error)
{
    if (image->dtype != TESS_F64 && image->dtype != TESS_I32 && image->dtype != TESS_U32)
        return TESS_OK;
    for (int b = 0; b < bands; b++) {
        const band_sums s = sums_of(image, bands, samples, pixels, keep, b);
        const double deviation = s.count < LEAST ? 0 : sqrt(s.spread / (double)s.count);
        if (s.error > MOST_ERROR * MOST_ERROR * s.spread && deviation > LEAST_SPREAD * fabs(s.mean))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "band %d has values near %.9g that vary by %.2g, which would be lost in the float32 "
                "that pipelines compute in; subtract a constant from it",
                b + 1, s.mean, deviation);
    }
    return TESS_OK;
}
