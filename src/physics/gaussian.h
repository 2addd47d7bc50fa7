/* gaussian.h: the kernel of an anisotropic Gaussian blur, sampled at the pixels and cut off at a bit more than three
 * standard deviations. */
#ifndef TESS_PHYSICS_GAUSSIAN_H
#define TESS_PHYSICS_GAUSSIAN_H

#include <stdint.h>

typedef struct tess_gaussian {
    double sigma_rows, sigma_columns; /* along the height and along the width, before it is turned */
    double angle;                     /* degrees */
} tess_gaussian;

/* Pixels on each side of the centre: the kernel has 2 reach + 1 of them a side. */
int64_t tess_gaussian_reach(const tess_gaussian *gaussian);
/* Row y, counted from the centre, without the division by the sum of all: 2 reach + 1 values. */
void tess_gaussian_row(const tess_gaussian *gaussian, int64_t y, double *row);
/* With x to the right and y downwards from the centre, u = x cos - y sin and v = x sin + y cos:
 * exp(-u^2 / (2 sigma_columns^2) - v^2 / (2 sigma_rows^2)), divided by the sum of all; row-major. */
void tess_gaussian_kernel(const tess_gaussian *gaussian, double *kernel);

#endif
