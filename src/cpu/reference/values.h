/* values.h: access of the reference kernels to a tensor's values: any of the three types in memory, fp64 in
 * arithmetic. */
#ifndef TESS_CPU_REFERENCE_VALUES_H
#define TESS_CPU_REFERENCE_VALUES_H

#include <math.h>

#include "op/op.h"

static inline double tess_reference_load(const tess_tensor *t, const void *data, int64_t at)
{
    if (t->dtype == TESS_F16)
        return tess_half_to_float(((const uint16_t *)data)[at]);
    return t->dtype == TESS_BF16 ? (double)tess_bf16_to_float(((const uint16_t *)data)[at])
                                 : (double)((const float *)data)[at];
}

static inline void tess_reference_store(const tess_tensor *t, void *data, int64_t at, double value)
{
    if (t->dtype == TESS_BF16)
        ((uint16_t *)data)[at] = tess_float_to_bf16((float)value);
    else if (t->dtype == TESS_F16)
        ((uint16_t *)data)[at] = tess_float_to_half((float)value);
    else
        ((float *)data)[at] = (float)value;
}

static inline int64_t tess_reference_place(const tess_tensor *t, int64_t n, int64_t d, int64_t y, int64_t x)
{
    return n * t->stride_n + d * t->stride_d + y * t->stride_h + x * t->stride_w;
}

static inline double tess_reference_activated(tess_activation activation, double value)
{
    switch (activation) {
    case TESS_LINEAR:
        return value;
    case TESS_RELU:
        return value < 0 ? 0 : value;
    case TESS_SILU:
        return value / (1 + exp(-value));
    }
    return NAN;
}

#endif
