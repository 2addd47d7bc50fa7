/* fragments.cuh: the instructions of attention by matrix products. With g = lane / 4 and t = lane % 4 a lane holds, of a
 * 16 x 8 by 8 x 8 product: left operand: columns 2t, 2t+1 of rows g and g + 8; right operand: rows 2t, 2t+1 of column g;
 * sums as in conv/matrix.cuh, which has the products over 16. */
#ifndef TESS_CUDA_ATTENTION_FRAGMENTS_CUH
#define TESS_CUDA_ATTENTION_FRAGMENTS_CUH

#include "cuda/conv/matrix.cuh"

template <typename T>
__device__ __forceinline__ void tess_matrix_add8(float sums[4], const uint32_t a[2], uint32_t b);

template <>
__device__ __forceinline__ void tess_matrix_add8<__half>(float sums[4], const uint32_t a[2], uint32_t b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b));
}

template <>
__device__ __forceinline__ void tess_matrix_add8<__nv_bfloat16>(float sums[4], const uint32_t a[2],
                                                                uint32_t b)
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(b));
}

/* Loads four matrices of 8 x 8 values. Lane l gives the address of row l % 8 of matrix l / 8 and gets values 2t, 2t+1 of
 * row g of each matrix. */
__device__ __forceinline__ void tess_matrix_load(uint32_t rows[4], const uint4 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(rows[0]), "=r"(rows[1]), "=r"(rows[2]), "=r"(rows[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}

/* The same, but a lane gets value g of rows 2t, 2t+1. */
__device__ __forceinline__ void tess_matrix_load_turned(uint32_t columns[4], const uint4 *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(columns[0]), "=r"(columns[1]), "=r"(columns[2]), "=r"(columns[3])
                 : "r"((uint32_t)__cvta_generic_to_shared(row))
                 : "memory");
}

/* 2^x by the unit for special functions; results below 2^-126 are zeros. */
__device__ __forceinline__ float tess_power2(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Not a number if one of the two is not. */
__device__ __forceinline__ float tess_larger(float a, float b)
{
    float y;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
    return y;
}

template <typename T> __device__ __forceinline__ uint32_t tess_rounded_pair(float low, float high);

template <> __device__ __forceinline__ uint32_t tess_rounded_pair<__half>(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&both);
}

template <> __device__ __forceinline__ uint32_t tess_rounded_pair<__nv_bfloat16>(float low, float high)
{
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t *>(&both);
}

#endif
