/* samples.h: between the samples of a file and values on the [0, 1] scale. Integers are divided by the value
 * that means 1 and, on the way back, rounded to nearest and clamped to their type; floats pass as they are.
 */
#ifndef TESS_TENSOR_SAMPLES_H
#define TESS_TENSOR_SAMPLES_H

#include "tensor/tensor.h"

void tess_samples_to_float(tess_dtype dtype, double full_scale, const void *samples, int64_t count,
                           float *values);
void tess_samples_from_float(tess_dtype dtype, double full_scale, const float *values, int64_t count,
                             void *samples);

/* The same with any two samples at 0 and 1. Equal to the above, bit for bit, where low is 0. */
typedef struct tess_scale {
    double low, high;
} tess_scale;
void tess_samples_to_values(tess_dtype dtype, tess_scale scale, const void *samples, int64_t count,
                            float *values);
/* Integers are rounded to nearest and clamped to their type. */
void tess_samples_from_values(tess_dtype dtype, tess_scale scale, const float *values, int64_t count,
                              void *samples);
/* The sample that means 1 by its type: its maximum for integers, 1 for floats. */
double tess_samples_full_scale(tess_dtype dtype);

#endif
