#include "tensor/samples.h"

#include <math.h>
#include <string.h>

/* One loop for each sample type; the table of cases below is all there is to say about them. */
#define TO_FLOAT(type)                                                                                       \
    for (int64_t i = 0; i < count; i++)                                                                      \
    values[i] = (float)((const type *)samples)[i] * scale

#define FROM_FLOAT(type, least, most)                                                                        \
    for (int64_t i = 0; i < count; i++) {                                                                    \
        double v = rint((double)values[i] * full_scale);                                                     \
        ((type *)samples)[i] = (type)(v >= (most)   ? (most)                                                 \
                                      : v > (least) ? v                                                      \
                                                    : (least)); /* NaN: the least */                         \
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
    default:
        memcpy(values, samples, (size_t)count * sizeof(float));
    }
}

void tess_samples_from_float(tess_dtype dtype, double full_scale, const float *values, int64_t count,
                             void *samples)
{
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
    default:
        memcpy(samples, values, (size_t)count * sizeof(float));
    }
}
