/* gaussian.h: the kernel of an anisotropic Gaussian blur, sampled at the pixels and cut off at slightly more than
 * three standard deviations. */
#ifndef TESS_PHYSICS_GAUSSIAN_H
#define TESS_PHYSICS_GAUSSIAN_H

#include <stdint.h>

typedef struct tess_gaussian {
    double sigma_rows, sigma_columns; /* vertical and horizontal, before the rotation */
    double angle;                     /* degrees */
} tess_gaussian;

/* Pixels on each side of the centre: a side of the kernel has 2 reach + 1 pixels. */
int64_t tess_gaussian_reach(const tess_gaussian *gaussian);
/* Row y, counted from the centre, before the division by the total: 2 reach + 1 values. */
void tess_gaussian_row(const tess_gaussian *gaussian, int64_t y, double *row);
/* With x to the right and y downwards from the centre, u = x cos - y sin and v = x sin + y cos: exp(-u^2 / (2
 * sigma_columns^2) - v^2 / (2 sigma_rows^2)), divided by the total; row-major. */
void tess_gaussian_kernel(const tess_gaussian *gaussian, double *kernel);

#endif
