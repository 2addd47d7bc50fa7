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

#endif
