/* tensor_map.h: tensor descriptors for the bulk copies of Hopper and later. The encoder is in the driver
 * library, which is not linked: its address comes from the runtime. */
#ifndef TESS_CUDA_TENSOR_MAP_H
#define TESS_CUDA_TENSOR_MAP_H

#include <cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

#include "tensor/tensor.h"

/* Dimension 0 is the fastest and dense; stride_bytes[i] is that of dimension i + 1. A box reads zeros outside
 * the tensor. element_strides NULL = ones; swizzle_bytes 0, 32, 64 or 128. Returns false if the driver
 * refuses. */
bool tess_cuda_tensor_map(CUtensorMap *map, tess_dtype dtype, int rank, void *base, const uint64_t *sizes,
                          const uint64_t *stride_bytes, const uint32_t *box, const uint32_t *element_strides,
                          int swizzle_bytes);

#ifdef __cplusplus
}
#endif
#endif
