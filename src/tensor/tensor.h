/* tensor.h: the description of a tensor: element type, batch + three spatial sizes + channels, strides. It
 * holds no data; the caller owns that. Data is channels-last everywhere: the channel stride is 1. */
#ifndef TESS_TENSOR_TENSOR_H
#define TESS_TENSOR_TENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tess_dtype {
    TESS_F32,
    TESS_F16,
    TESS_BF16,
    TESS_F64,
    TESS_U8,
    TESS_I8,
    TESS_U16,
    TESS_I16,
    TESS_U32,
    TESS_I32,
    TESS_I64,
    TESS_BOOL
} tess_dtype;

typedef struct tess_tensor {
    tess_dtype dtype;
    int64_t n, d, h, w, c;                          /* depth 1 in 2-D */
    int64_t stride_n, stride_d, stride_h, stride_w; /* in elements */
} tess_tensor;

size_t tess_dtype_size(tess_dtype dtype);
const char *tess_dtype_name(tess_dtype dtype); /* "U16": short, for names of op classes */
const char *tess_dtype_word(tess_dtype dtype); /* "uint16": NumPy's name, for people */

/* A dense 2-D tensor, channels-last. */
tess_tensor tess_tensor_2d(tess_dtype dtype, int64_t n, int64_t h, int64_t w, int64_t c);
/* The same with depth. */
tess_tensor tess_tensor_3d(tess_dtype dtype, int64_t n, int64_t d, int64_t h, int64_t w, int64_t c);
/* Channels [first, first+count) of the same storage; the caller advances the data pointer by `first` elements. */
tess_tensor tess_tensor_channels(tess_tensor whole, int64_t count);
/* True when type, sizes and strides are equal. */
bool tess_tensor_same(const tess_tensor *a, const tess_tensor *b);
/* Bytes from the first element to the end of the last; false on overflow. */
bool tess_tensor_bytes(const tess_tensor *tensor, size_t *bytes);

float tess_half_to_float(uint16_t half);
uint16_t tess_float_to_half(float value);

static inline float tess_bf16_to_float(uint16_t value)
{
    union {
        uint32_t u;
        float f;
    } bits = {.u = (uint32_t)value << 16};
    return bits.f;
}

/* Round to nearest even, as the matrix instructions do; NaN stays NaN. */
static inline uint16_t tess_float_to_bf16(float value)
{
    union {
        float f;
        uint32_t u;
    } bits = {.f = value};
    if ((bits.u & 0x7fffffffu) > 0x7f800000u)
        return (uint16_t)(bits.u >> 16 | 0x40);
    return (uint16_t)((bits.u + 0x7fffu + (bits.u >> 16 & 1u)) >> 16);
}

#endif
