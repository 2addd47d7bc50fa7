#include "tensor/samples.h"

#include <math.h>
#include <string.h>

/* One loop for each sample type; the table of cases below lists them all. */
#define TO_FLOAT(type)                                                                                       \
    for (int64_t i = 0; i < count; i++)                                                                      \
    values[i] = (float)((const type *)samples)[i] * scale

#define FROM_FLOAT(type, least, most)                                                                        \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        double v = rint((double)values[i] * full_scale + low);                                               \
        ((type *)samples)[i] = (type)(v >= (most)   ? (most)                                                 \
                                      : v > (least) ? v                                                      \
                                                    : (least)); /* NaN becomes the least value */            \
    }

void tess_samples_to_float(tess_dtype dtype, double full_scale, const void *samples, int64_t count,
                           float *values)
{
    const float scale = (float)(1.0 / full_scale);
    switch (dtype) {
    case TESS_U8:
        TO_FLOAT(uint8_t);
        break;
    case TESS_U16:
        TO_FLOAT(uint16_t);
        break;
    case TESS_I16:
        TO_FLOAT(int16_t);
        break;
    case TESS_U32:
        TO_FLOAT(uint32_t);
        break;
    case TESS_I32:
        TO_FLOAT(int32_t);
        break;
    case TESS_F16:
        for (int64_t i = 0; i < count; i++)
            values[i] = tess_half_to_float(((const uint16_t *)samples)[i]);
        break;
    case TESS_F64:
        for (int64_t i = 0; i < count; i++)
            values[i] = (float)((const double *)samples)[i];
        break;
    default:
        memcpy(values, samples, (size_t)count * sizeof(float));
    }
}

/* A product of two floats is exact in fp64, so this rounds only once, as TO_FLOAT does. */
#define TO_VALUES(type)                                                                                      \
    for (int64_t i = 0; i < count; i++)                                                                      \
    values[i] = (float)(((double)((const type *)samples)[i] - scale.low) * factor)

void tess_samples_to_values(tess_dtype dtype, tess_scale scale, const void *samples, int64_t count,
                            float *values)
{
    const double inverse = 1 / (scale.high - scale.low);
    const double factor = isnormal((float)inverse) ? (double)(float)inverse : inverse; /* of tiny doubles */
    switch (dtype) {
    case TESS_U8:
        TO_VALUES(uint8_t);
        break;
    case TESS_U16:
        TO_VALUES(uint16_t);
        break;
    case TESS_I16:
        TO_VALUES(int16_t);
        break;
    case TESS_U32:
        TO_VALUES(uint32_t);
        break;
    case TESS_I32:
        TO_VALUES(int32_t);
        break;
    case TESS_F16:
        for (int64_t i = 0; i < count; i++)
            values[i] =
                (float)(((double)tess_half_to_float(((const uint16_t *)samples)[i]) - scale.low) * factor);
        break;
    case TESS_F64:
        TO_VALUES(double);
        break;
    default:
        TO_VALUES(float);
    }
}

void tess_samples_from_values(tess_dtype dtype, tess_scale scale, const float *values, int64_t count,
                              void *samples)
{
    const double low = scale.low, full_scale = scale.high - scale.low;
    switch (dtype) {
    case TESS_U8:
        FROM_FLOAT(uint8_t, 0, UINT8_MAX);
        break;
    case TESS_U16:
        FROM_FLOAT(uint16_t, 0, UINT16_MAX);
        break;
    case TESS_I16:
        FROM_FLOAT(int16_t, INT16_MIN, INT16_MAX);
        break;
    case TESS_U32:
        FROM_FLOAT(uint32_t, 0, UINT32_MAX);
        break;
    case TESS_I32:
        FROM_FLOAT(int32_t, INT32_MIN, INT32_MAX);
        break;
    case TESS_F16:
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)samples)[i] = tess_float_to_half((float)((double)values[i] * full_scale + low));
        break;
    case TESS_F64:
        for (int64_t i = 0; i < count; i++)
            ((double *)samples)[i] = (double)values[i] * full_scale + low;
        break;
    default:
        for (int64_t i = 0; i < count; i++)
            ((float *)samples)[i] = (float)((double)values[i] * full_scale + low);
    }
}

void tess_samples_from_float(tess_dtype dtype, double full_scale, const float *values, int64_t count,
                             void *samples)
{
    if (dtype == TESS_F32)
        memcpy(samples, values, (size_t)count * sizeof(float));
    else if (dtype == TESS_F16)
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)samples)[i] = tess_float_to_half(values[i]);
    else if (dtype == TESS_F64)
        for (int64_t i = 0; i < count; i++)
            ((double *)samples)[i] = (double)values[i];
    else
        tess_samples_from_values(dtype, (tess_scale){0, full_scale}, values, count, samples);
}

double tess_samples_full_scale(tess_dtype dtype)
{
    switch (dtype) {
    case TESS_U8:
        return UINT8_MAX;
    case TESS_U16:
        return UINT16_MAX;
    case TESS_I16:
        return INT16_MAX;
    case TESS_U32:
        return UINT32_MAX;
    case TESS_I32:
        return INT32_MAX;
    default:
        return 1;
    }
}

double tess_samples_opaque(tess_dtype dtype, double largest)
{
    const bool floats = dtype == TESS_F16 || dtype == TESS_F32 || dtype == TESS_F64;
    if (dtype == TESS_U8 || dtype == TESS_U16)
        return tess_samples_full_scale(dtype);
    return largest > 0 && isfinite(largest) ? largest : floats ? 1 : UINT8_MAX;
}
