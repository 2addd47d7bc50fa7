/* tensors.cuh: where the pixels of a tensor are, and access to single values whose type is known at run time. */
#ifndef TESS_CUDA_TENSORS_CUH
#define TESS_CUDA_TENSORS_CUH

#include "cuda/core/cuda.h"
#include "cuda/core/values.cuh"

/* The offset of a pixel of image n, counted over depth, height and width. flat: tess_flat(&t). */
static __device__ __forceinline__ int64_t tess_place(const tess_tensor &t, bool flat, int64_t n,
                                                     int64_t pixel)
{
    if (flat)
        return n * t.stride_n + pixel * t.stride_w;
    const int64_t row = pixel / t.w;
    return n * t.stride_n + row / t.h * t.stride_d + row % t.h * t.stride_h +
           (pixel - row * t.w) * t.stride_w;
}

static __device__ __forceinline__ float tess_value_at(tess_dtype dtype, const void *data, int64_t at)
{
    return dtype == TESS_F16    ? tess_value(((const __half *)data)[at])
           : dtype == TESS_BF16 ? tess_value(((const __nv_bfloat16 *)data)[at])
                                : ((const float *)data)[at];
}

static __device__ __forceinline__ void tess_put_at(tess_dtype dtype, void *data, int64_t at, float value)
{
    if (dtype == TESS_F16)
        ((__half *)data)[at] = tess_rounded<__half>(value);
    else if (dtype == TESS_BF16)
        ((__nv_bfloat16 *)data)[at] = tess_rounded<__nv_bfloat16>(value);
    else
        ((float *)data)[at] = value;
}

static inline bool tess_is_value(tess_dtype dtype)
{
    return dtype == TESS_F32 || dtype == TESS_F16 || dtype == TESS_BF16;
}

static inline int64_t tess_pixels(const tess_tensor *t)
{
    return t->d * t->h * t->w;
}

static inline int64_t tess_values(const tess_tensor *t)
{
    return t->n * tess_pixels(t) * t->c;
}

static inline bool tess_same_sizes(const tess_tensor *a, const tess_tensor *b)
{
    return a->n == b->n && a->d == b->d && a->h == b->h && a->w == b->w && a->c == b->c;
}

/* True if pixels are stride_w apart throughout an image. */
static inline bool tess_flat(const tess_tensor *t)
{
    return (t->h == 1 || t->stride_h == t->w * t->stride_w) &&
           (t->d == 1 || t->stride_d == t->h * t->stride_h);
}

/* True if the values have no gaps; strides of dimensions of size one do not matter. */
static inline bool tess_dense(const tess_tensor *t)
{
    return (t->w == 1 || t->stride_w == t->c) && (t->h == 1 || t->stride_h == t->w * t->c) &&
           (t->d == 1 || t->stride_d == t->h * t->w * t->c) &&
           (t->n == 1 || t->stride_n == t->d * t->h * t->w * t->c);
}

/* True for so many fp32 values without gaps. */
static inline bool tess_is_vector(const tess_tensor *t, int64_t values)
{
    return t->dtype == TESS_F32 && tess_dense(t) && tess_values(t) == values;
}

/* True if pieces of `size` values can be read and written in one instruction. */
static inline bool tess_whole(const tess_tensor *t, const void *data, int64_t size)
{
    return t->c % size == 0 && t->stride_n % size == 0 && t->stride_d % size == 0 &&
           t->stride_h % size == 0 && t->stride_w % size == 0 &&
           (uintptr_t)data % ((size_t)size * tess_dtype_size(t->dtype)) == 0;
}

#endif
