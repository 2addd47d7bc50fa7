#include "tensor/terrain/roughness.h"

#include <math.h>

enum { LEAST_COUNT = 16 };

/* Second differences with `step` elements between neighbours, centred on the rows and columns given. */
static void add(const tess_roughness_area *area, int64_t step, const int64_t range[4], double *sum,
                int64_t *count)
{
    for (int64_t y = range[0]; y < range[1]; y++) {
        double row = 0;
        int64_t found = 0;
        for (int64_t x = range[2]; x < range[3]; x++) {
            const int64_t i = y * area->w + x;
            if (area->flags[i - step] | area->flags[i] | area->flags[i + step])
                continue;
            const double d =
                (double)area->values[i - step] - 2 * (double)area->values[i] + (double)area->values[i + step];
            row += d * d;
            found++;
        }
        *sum += row;
        *count += found;
    }
}

double tess_roughness(const tess_roughness_area *area, int64_t lag)
{
    double sum = 0;
    int64_t count = 0;
    add(area, lag, (int64_t[]){area->top, area->bottom, area->left + lag, area->right - lag}, &sum, &count);
    add(area, lag * area->w, (int64_t[]){area->top + lag, area->bottom - lag, area->left, area->right}, &sum,
        &count);
    return count >= LEAST_COUNT ? sum / (double)count : NAN;
}

double tess_roughness_exponent(const tess_roughness_area *area, double lag)
{
    const double octave = fmax(log2(lag), 0);
    const int64_t low = (int64_t)1 << (int)octave;
    const double part = octave - floor(octave);
    const double a = tess_roughness(area, low), b = tess_roughness(area, 2 * low),
                 c = tess_roughness(area, 4 * low);
    if (!(a > 0 && b > 0))
        return 1;
    const double near = log2(b / a) / 2, far = c > 0 ? log2(c / b) / 2 : near;
    return (1 - part) * near + part * far;
}
