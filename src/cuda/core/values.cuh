/* values.cuh: access to a tensor's values: any of the three types in memory, fp32 in registers. */
#ifndef TESS_CUDA_VALUES_CUH
#define TESS_CUDA_VALUES_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

__device__ __forceinline__ float tess_value(float v)
{
    return v;
}

__device__ __forceinline__ float tess_value(__half v)
{
    return __half2float(v);
}

__device__ __forceinline__ float tess_value(__nv_bfloat16 v)
{
    return __bfloat162float(v);
}

template <typename T> __device__ __forceinline__ T tess_rounded(float v);

template <> __device__ __forceinline__ float tess_rounded<float>(float v)
{
    return v;
}

template <> __device__ __forceinline__ __half tess_rounded<__half>(float v)
{
    return __float2half_rn(v);
}

template <> __device__ __forceinline__ __nv_bfloat16 tess_rounded<__nv_bfloat16>(float v)
{
    return __float2bfloat16_rn(v);
}

/* N neighbours that one instruction reads or writes (N * sizeof(T) is 4, 8 or 16, and so is the alignment). */
template <typename T, int N> struct alignas(sizeof(T) * N) tess_vector {
    T v[N];
};

template <int N, typename T> __device__ __forceinline__ void tess_load(const T *from, float *values)
{
    constexpr int PIECE = N * sizeof(T) > 16 ? 16 / (int)sizeof(T) : N;
#pragma unroll
    for (int p = 0; p < N; p += PIECE) {
        tess_vector<T, PIECE> piece = *reinterpret_cast<const tess_vector<T, PIECE> *>(from + p);
#pragma unroll
        for (int i = 0; i < PIECE; i++)
            values[p + i] = tess_value(piece.v[i]);
    }
}

template <int N, typename T> __device__ __forceinline__ void tess_store(T *to, const float *values)
{
    constexpr int PIECE = N * sizeof(T) > 16 ? 16 / (int)sizeof(T) : N;
#pragma unroll
    for (int p = 0; p < N; p += PIECE) {
        tess_vector<T, PIECE> piece;
#pragma unroll
        for (int i = 0; i < PIECE; i++)
            piece.v[i] = tess_rounded<T>(values[p + i]);
        *reinterpret_cast<tess_vector<T, PIECE> *>(to + p) = piece;
    }
}

#endif
