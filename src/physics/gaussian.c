#include "physics/gaussian.h"

#include <math.h>

int64_t tess_gaussian_reach(const tess_gaussian *g)
{
    return (int64_t)(fmax(g->sigma_rows, g->sigma_columns) / 0.3 + 1);
}

void tess_gaussian_row(const tess_gaussian *g, int64_t y, double *row)
{
    const double turn = g->angle * (3.14159265358979323846 / 180), cosine = cos(turn), sine = sin(turn);
    const int64_t reach = tess_gaussian_reach(g);
    for (int64_t x = -reach; x <= reach; x++) {
        const double u = ((double)x * cosine - (double)y * sine) / g->sigma_columns,
                     v = ((double)x * sine + (double)y * cosine) / g->sigma_rows;
        row[x + reach] = exp(-0.5 * (u * u + v * v));
    }
}

void tess_gaussian_kernel(const tess_gaussian *g, double *kernel)
{
    const int64_t reach = tess_gaussian_reach(g), side = 2 * reach + 1;
    double sum = 0;
    for (int64_t y = -reach; y <= reach; y++)
        tess_gaussian_row(g, y, kernel + (y + reach) * side);
    for (int64_t i = 0; i < side * side; i++)
        sum += kernel[i];
    for (int64_t i = 0; i < side * side; i++)
        kernel[i] /= sum;
}
