/* samples.h: converts between the samples of a file and values on the [0, 1] scale. Integers are divided by the
 * sample that means 1; in the other direction they are rounded to nearest and clamped to their type. Floats are
 * unchanged. */
#ifndef TESS_TENSOR_SAMPLES_H
#define TESS_TENSOR_SAMPLES_H

#include "tensor/tensor.h"

void tess_samples_to_float(tess_dtype dtype, double full_scale, const void *samples, int64_t count,
                           float *values);
void tess_samples_from_float(tess_dtype dtype, double full_scale, const float *values, int64_t count,
                             void *samples);

/* The same with any two samples at 0 and 1. Bit for bit equal to the above when low is 0. */
typedef struct tess_scale {
    double low, high;
} tess_scale;
void tess_samples_to_values(tess_dtype dtype, tess_scale scale, const void *samples, int64_t count,
                            float *values);
/* Integers are rounded to nearest and clamped to their type. */
void tess_samples_from_values(tess_dtype dtype, tess_scale scale, const float *values, int64_t count,
                              void *samples);
/* The sample that means 1 for this type: the maximum for integers, 1 for floats. */
double tess_samples_full_scale(tess_dtype dtype);
/* The sample of an alpha channel or mask that means opaque: the maximum of 8 and 16 bits unsigned. Nothing says what
 * it is in other types, where programs write 1, 255 or their type's maximum: the largest sample found, or without one
 * (0) what is usual, 1 for floats and 255 for integers. */
double tess_samples_opaque(tess_dtype dtype, double largest);

#endif
