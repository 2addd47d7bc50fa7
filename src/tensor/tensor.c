#include "tensor/tensor.h"

#include <string.h>

#include "base/checked.h"

static const struct {
    const char *name, *word;
    size_t size;
} dtypes[] = {
    [TESS_F32] = {"F32", "float32", 4},    [TESS_F16] = {"F16", "float16", 2},
    [TESS_BF16] = {"BF16", "bfloat16", 2}, [TESS_F64] = {"F64", "float64", 8},
    [TESS_U8] = {"U8", "uint8", 1},        [TESS_I8] = {"I8", "int8", 1},
    [TESS_U16] = {"U16", "uint16", 2},     [TESS_I16] = {"I16", "int16", 2},
    [TESS_U32] = {"U32", "uint32", 4},     [TESS_I32] = {"I32", "int32", 4},
    [TESS_I64] = {"I64", "int64", 8},      [TESS_BOOL] = {"BOOL", "bool", 1},
};

size_t tess_dtype_size(tess_dtype dtype)
{
    return dtypes[dtype].size;
}

const char *tess_dtype_name(tess_dtype dtype)
{
    return dtypes[dtype].name;
}

const char *tess_dtype_word(tess_dtype dtype)
{
    return dtypes[dtype].word;
}

/* On overflow returns the largest number, for which tess_tensor_bytes then fails. */
static int64_t times(int64_t a, int64_t b)
{
    int64_t product;
    return tess_mul_i64(a, b, &product) ? product : INT64_MAX;
}

tess_tensor tess_tensor_2d(tess_dtype dtype, int64_t n, int64_t h, int64_t w, int64_t c)
{
    const int64_t row = times(w, c), image = times(h, row);
    return (tess_tensor){.dtype = dtype,
                         .n = n,
                         .d = 1,
                         .h = h,
                         .w = w,
                         .c = c,
                         .stride_n = image,
                         .stride_d = image,
                         .stride_h = row,
                         .stride_w = c};
}

tess_tensor tess_tensor_3d(tess_dtype dtype, int64_t n, int64_t d, int64_t h, int64_t w, int64_t c)
{
    tess_tensor volume = tess_tensor_2d(dtype, n, h, w, c);
    volume.d = d;
    volume.stride_n = times(d, volume.stride_d);
    return volume;
}

tess_tensor tess_tensor_channels(tess_tensor whole, int64_t count)
{
    whole.c = count;
    return whole;
}

bool tess_tensor_bytes(const tess_tensor *t, size_t *bytes)
{
    const int64_t sizes[] = {t->n, t->d, t->h, t->w},
                  strides[] = {t->stride_n, t->stride_d, t->stride_h, t->stride_w};
    int64_t last = t->c;
    for (int i = 0; i < 4; i++) {
        int64_t reach;
        if (!tess_mul_i64(sizes[i] - 1, strides[i], &reach) || !tess_add_i64(last, reach, &last))
            return false;
    }
    return last >= 0 && tess_mul_size((size_t)last, tess_dtype_size(t->dtype), bytes);
}

float tess_half_to_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half >> 15) << 31, exponent = half >> 10 & 31, fraction = half & 1023, bits;
    if (exponent == 31) {
        bits = sign | 0x7f800000u | fraction << 13;
    } else if (exponent) {
        bits = sign | (exponent + 112) << 23 | fraction << 13;
    } else {
        float value = (float)fraction * 0x1p-24f; /* subnormal: exact in fp32 */
        return sign ? -value : value;
    }
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

uint16_t tess_float_to_half(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000u);
    uint32_t magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u)
        return sign | 0x7e00u;
    if (magnitude >= 0x477ff000u) /* rounds to 65536 or more */
        return sign | 0x7c00u;
    if (magnitude < 0x38800000u) { /* below the smallest normal half */
        float absolute;
        memcpy(&absolute, &magnitude, sizeof absolute);
        absolute += 0.5f; /* the ulp of 0.5 is 2^-24, so this addition rounds to nearest even */
        uint32_t rounded;
        memcpy(&rounded, &absolute, sizeof rounded);
        return (uint16_t)(sign | (rounded - 0x3f000000u));
    }
    return (uint16_t)(sign | (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13);
}

bool tess_tensor_same(const tess_tensor *a, const tess_tensor *b)
{
    return a->dtype == b->dtype && a->n == b->n && a->d == b->d && a->h == b->h && a->w == b->w &&
           a->c == b->c && a->stride_n == b->stride_n && a->stride_d == b->stride_d &&
           a->stride_h == b->stride_h && a->stride_w == b->stride_w;
}
