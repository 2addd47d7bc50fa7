/* matrix.cuh: the matrix instruction of every card since Ampere: a 16 x 16 by 16 x 8 product of fp16 or bf16
 * values, summed in fp32. With g = lane / 4 and t = lane % 4 a lane holds: left operand: columns 2t, 2t+1 of
 * rows g and g + 8, then columns 2t+8, 2t+9 of the same rows; right operand: rows 2t, 2t+1 and 2t+8, 2t+9 of
 * column g; sums: columns 2t, 2t+1 of rows g and g + 8. */
#ifndef TESS_CUDA_MATRIX_CUH
#define TESS_CUDA_MATRIX_CUH

#include "cuda/core/values.cuh"

template <typename T>
__device__ __forceinline__ void tess_matrix_add(float sums[4], const uint32_t a[4], const uint32_t b[2]);

template <>
__device__ __forceinline__ void tess_matrix_add<__half>(float sums[4], const uint32_t a[4],
                                                        const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <>
__device__ __forceinline__ void tess_matrix_add<__nv_bfloat16>(float sums[4], const uint32_t a[4],
                                                               const uint32_t b[2])
{
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
                 "{%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <typename T> __device__ __forceinline__ uint32_t tess_pair(T low, T high)
{
    tess_vector<T, 2> both = {{low, high}};
    return *reinterpret_cast<uint32_t *>(&both);
}

#endif
