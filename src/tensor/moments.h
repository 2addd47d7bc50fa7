/* moments.h: count, least and largest value, mean and centred second moments of pixels, as one flat array of fp64, so that
 * the output of an op, a merge of blocks and a reduction over ranks are the same thing.
 *
 * Layout: count, least, largest (over all channels), mean[c], and with covariance M2[c * c], the sum over pixels of (x -
 * mean)(x - mean)', full and symmetric; the covariance is M2 / (count - 1). Arrays are merged by the formulas of Chan,
 * Golub and LeVeque (1979), which lose no digits when means are far from zero. */
#ifndef TESS_TENSOR_MOMENTS_H
#define TESS_TENSOR_MOMENTS_H

#include <stdbool.h>
#include <stddef.h>

enum { TESS_MOMENTS_COUNT, TESS_MOMENTS_LEAST, TESS_MOMENTS_LARGEST, TESS_MOMENTS_MEAN };

/* Number of values of the array. */
static inline size_t tess_moments_values(int channels, bool covariance)
{
    const size_t c = (size_t)channels;
    return TESS_MOMENTS_MEAN + c + (covariance ? c * c : 0);
}

/* M2 of an array that has it. */
static inline size_t tess_moments_second(int channels)
{
    return TESS_MOMENTS_MEAN + (size_t)channels;
}

/* No pixels: least is infinity, largest -infinity, the others are zero. */
void tess_moments_clear(double *moments, int channels, bool covariance);
/* Adds the pixels of `from` to those of `into`. */
void tess_moments_merge(double *into, const double *from, int channels, bool covariance);
/* The moments of a x + b, with covariance, from those of x: mean' = a mean + b, M2' = a M2 a'. `a` has `outputs` rows of
 * `channels` values, `b` one value a row. Least and largest are known only if every channel occurs, all
 * with one positive factor and one offset; else they are NaN. */
void tess_moments_affine(const double *from, int channels, const double *a, const double *b, int outputs,
                         double *to);

#endif
