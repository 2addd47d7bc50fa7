/* norm_cluster.cuh: the instructions that the group norm in clusters uses: copies to shared memory that need no
 * registers, barriers and stores across a cluster, and pieces of 16 bytes as floats. Compute capability 9.0 or newer. */
#ifndef TESS_CUDA_NORM_CLUSTER_CUH
#define TESS_CUDA_NORM_CLUSTER_CUH

#include "cuda/core/activation.cuh"
#include "cuda/core/early.cuh"
#include "cuda/core/tensors.cuh"
#include "cuda/norm/norm_split.h"

namespace
{

__device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

/* Visible to the thread itself after wait_copies; PENDING: of the last commits, this many may be under way. */
__device__ __forceinline__ void copy_piece(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ void commit_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int PENDING> __device__ __forceinline__ void wait_copies()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}

/* All threads of all blocks of the cluster call arrive, then wait. What was written to shared memory before `arrive`,
 * here or in another block, can be read after `wait`; the first says only that the block has started. */
__device__ __forceinline__ void cluster_arrive_started()
{
    asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}

__device__ __forceinline__ void cluster_arrive()
{
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}

__device__ __forceinline__ void cluster_wait()
{
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

/* Writes to the shared memory of block `rank` of the cluster, at the place that `at` has in this block's. */
__device__ __forceinline__ void store_in_block(uint32_t at, int rank, float2 value)
{
    uint32_t there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(rank));
    asm volatile("st.shared::cluster.v2.f32 [%0], {%1, %2};" ::"r"(there), "f"(value.x), "f"(value.y)
                 : "memory");
}

/* One piece of 16 bytes, of 8 or 4 values, and the values as floats. */
__device__ __forceinline__ void unpack(uint4 piece, float *values, __nv_bfloat16)
{
    const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        values[2 * i] = __uint_as_float(words[i] << 16);
        values[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}

__device__ __forceinline__ void unpack(uint4 piece, float *values, __half)
{
    const uint32_t words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 both = __half22float2(*reinterpret_cast<const __half2 *>(&words[i]));
        values[2 * i] = both.x;
        values[2 * i + 1] = both.y;
    }
}

__device__ __forceinline__ void unpack(uint4 piece, float *values, float)
{
    values[0] = __uint_as_float(piece.x);
    values[1] = __uint_as_float(piece.y);
    values[2] = __uint_as_float(piece.z);
    values[3] = __uint_as_float(piece.w);
}

__device__ __forceinline__ uint4 pack(const float *values, __nv_bfloat16)
{
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(values[2 * i], values[2 * i + 1]);
        words[i] = *reinterpret_cast<const uint32_t *>(&both);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ __forceinline__ uint4 pack(const float *values, __half)
{
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const __half2 both = __floats2half2_rn(values[2 * i], values[2 * i + 1]);
        words[i] = *reinterpret_cast<const uint32_t *>(&both);
    }
    return make_uint4(words[0], words[1], words[2], words[3]);
}

__device__ __forceinline__ uint4 pack(const float *values, float)
{
    return make_uint4(__float_as_uint(values[0]), __float_as_uint(values[1]), __float_as_uint(values[2]),
                      __float_as_uint(values[3]));
}

/* 1 + exp(-x), of x >= -40. */
__device__ __forceinline__ float one_and_power(float x)
{
    float power;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(power) : "f"(fmaxf(x, -40.0f) * -1.4426950408889634f));
    return 1.0f + power;
}

/* SiLU of two values with one reciprocal, as there are only 16 special function units a multiprocessor: 1 / a = b / (a
 * b). The limit keeps the product finite; below it SiLU is smaller than 2e-16 either way. */
__device__ __forceinline__ void silu_pair(float &x, float &y)
{
    const float a = one_and_power(x), b = one_and_power(y);
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(a * b));
    x *= r * b;
    y *= r * a;
}

template <int N> __device__ __forceinline__ void activate(tess_activation activation, float *values)
{
    if (activation == TESS_SILU) {
#pragma unroll
        for (int i = 0; i < N; i += 2)
            silu_pair(values[i], values[i + 1]);
    } else if (activation == TESS_RELU) {
#pragma unroll
        for (int i = 0; i < N; i++)
            values[i] = values[i] < 0 ? 0 : values[i];
    }
}

} // namespace

#endif
