/* group_norm.h: the launchers of group_norm.cu. Parameters are fp32 in every precision: c weights, then c biases. */
#ifndef TESS_CUDA_GROUP_NORM_H
#define TESS_CUDA_GROUP_NORM_H

#include "cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t tess_cuda_group_norm_workspace(const tess_op *op);
cudaError_t tess_cuda_group_norm_run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
