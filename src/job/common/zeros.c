#include "job/common/zeros.h"

#include <math.h>

enum { FEWEST = 64, RUN = 8, SOON = 64 };
static const double GAP = 0.05, STEPS = 16; /* of the other values' range; steps between these */
static const double SOLID = 0.95, MOST = 0.98;
static const double DARK = 16; /* of 255 */

void tess_zeros_begin(tess_zeros *z, tess_dtype dtype, int64_t height, int64_t width, int64_t channels,
                      int64_t colours)
{
    *z = (tess_zeros){.dtype = dtype,
                      .height = height,
                      .width = width,
                      .channels = channels,
                      .colours = colours,
                      .least = INFINITY,
                      .largest = -INFINITY,
                      .step = INFINITY};
}

/* The largest sample of a pixel, by its magnitude; 0 also if all others are NaN. */
static double strongest(const tess_zeros *z, const double *pixel)
{
    double most = 0;
    for (int64_t c = 0; c < z->colours; c++)
        most = fmax(most, fabs(pixel[c]));
    return most;
}

static bool has_nan(const tess_zeros *z, const double *pixel)
{
    bool found = false;
    for (int64_t c = 0; c < z->colours; c++)
        found = found || isnan(pixel[c]);
    return found;
}

static void end_run(tess_zeros *z, const double *row, int64_t from, int64_t to)
{
    const int64_t width = z->width, channels = z->channels;
    const bool first = z->rows == 0, last = z->rows == z->height - 1;
    z->count += to - from;
    if (to - from < RUN)
        return;
    z->in_runs += to - from;
    z->at_border += first || last || from == 0 || to == width;
    if (from > 0)
        z->ends++, z->dark_ends += strongest(z, row + (from - 1) * channels) < DARK;
    if (to < width)
        z->ends++, z->dark_ends += strongest(z, row + to * channels) < DARK;
}

static void count_others(tess_zeros *z, const double *pixel, const double *before)
{
    for (int64_t c = 0; c < z->colours; c++) {
        const double value = pixel[c], difference = before ? fabs(value - before[c]) : 0;
        if (!isfinite(value))
            continue;
        z->least = fmin(z->least, value), z->largest = fmax(z->largest, value);
        if (difference > 0 && difference < z->step)
            z->step = difference;
    }
}

void tess_zeros_row(tess_zeros *z, const double *row)
{
    const int64_t width = z->width, channels = z->channels;
    int64_t from = -1; /* of a run */
    for (int64_t x = 0; x < width; x++) {
        const double *pixel = row + x * channels;
        const bool value = strongest(z, pixel) > 0, zero = !value && !has_nan(z, pixel);
        if (zero && from < 0)
            from = x;
        if (zero)
            continue;
        if (value)
            count_others(z, pixel, x > 0 && from < 0 ? pixel - channels : NULL);
        if (from >= 0)
            end_run(z, row, from, x);
        from = -1;
    }
    if (from >= 0)
        end_run(z, row, from, width);
    z->pixels += width;
    z->rows++;
}

/* Of the other values from 0. */
static double gap_of(const tess_zeros *z)
{
    return z->least > 0 ? z->least : z->largest < 0 ? -z->largest : 0;
}

bool tess_zeros_hopeless(const tess_zeros *z)
{
    if (z->dtype == TESS_U8)
        return z->rows >= SOON && z->at_border == 0; /* a collar goes around */
    const double least = z->dtype == TESS_F32 || z->dtype == TESS_F64 ? 0 : STEPS;
    return z->largest >= z->least && (gap_of(z) == 0 || gap_of(z) < least);
}

bool tess_zeros_are_holes(const tess_zeros *z)
{
    if (z->rows < z->height || z->count < FEWEST || (double)z->count > MOST * (double)z->pixels ||
        !(z->largest >= z->least))
        return false;
    if (z->dtype == TESS_U8)
        return z->at_border >= RUN && (double)z->in_runs > SOLID * (double)z->count &&
               2 * z->dark_ends < z->ends;
    return gap_of(z) >= GAP * (z->largest - z->least) && gap_of(z) >= STEPS * z->step;
}
