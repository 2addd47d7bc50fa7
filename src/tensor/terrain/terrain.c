#include "tensor/terrain/terrain.h"

#include <math.h>

void tess_terrain_begin(tess_terrain *terrain, int64_t w, double pixel_height, double pixel_width)
{
    *terrain = (tess_terrain){.w = w, .pixel_height = pixel_height, .pixel_width = pixel_width};
}

/* Degrees; NaN when one of the pixels is. */
static double slope(const tess_terrain *terrain, const tess_terrain_rows *rows, int64_t x)
{
    const float *a = rows->above + x, *b = rows->here + x, *c = rows->below + x;
    const double east = (double)a[1] + 2 * (double)b[1] + (double)c[1],
                 west = (double)a[-1] + 2 * (double)b[-1] + (double)c[-1];
    const double south = (double)c[-1] + 2 * (double)c[0] + (double)c[1];
    const double north = (double)a[-1] + 2 * (double)a[0] + (double)a[1];
    const double dx = (east - west) / (8 * terrain->pixel_width),
                 dy = (south - north) / (8 * terrain->pixel_height);
    return atan(sqrt(dx * dx + dy * dy)) * (180 / 3.14159265358979323846);
}

static void add(tess_terrain_sums *sums, double error, double slope_error)
{
    sums->pixels++;
    sums->error += error;
    sums->square += error * error;
    sums->absolute += fabs(error);
    if (!isnan(slope_error)) {
        sums->slopes++;
        sums->slope_square += slope_error * slope_error;
        sums->slope_absolute += fabs(slope_error);
    }
}

void tess_terrain_row(tess_terrain *terrain, const tess_terrain_rows *result, const tess_terrain_rows *truth,
                      const uint8_t *flags, const uint8_t *classes)
{
    for (int64_t x = 0; x < terrain->w; x++) {
        if (!flags[x] || !isfinite(truth->here[x]))
            continue;
        const double error = (double)result->here[x] - (double)truth->here[x];
        const bool inside =
            x > 0 && x + 1 < terrain->w && result->above && result->below && truth->above && truth->below;
        const double slope_error = inside ? slope(terrain, result, x) - slope(terrain, truth, x) : NAN;
        add(&terrain->all, error, slope_error);
        if (classes && classes[x] < TESS_VOID_CLASSES)
            add(&terrain->classes[classes[x]], error, slope_error);
    }
}

tess_terrain_errors tess_terrain_result(const tess_terrain_sums *sums)
{
    const double n = sums->pixels ? (double)sums->pixels : NAN, s = sums->slopes ? (double)sums->slopes : NAN;
    return (tess_terrain_errors){.pixels = sums->pixels,
                                 .rmse = sqrt(sums->square / n),
                                 .mae = sums->absolute / n,
                                 .bias = sums->error / n,
                                 .slope_rmse = sqrt(sums->slope_square / s),
                                 .slope_mae = sums->slope_absolute / s};
}
