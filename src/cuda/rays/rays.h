/* rays.h: the kernel families behind the row for rays. */
#ifndef TESS_CUDA_RAYS_H
#define TESS_CUDA_RAYS_H

#include "cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* radon.cu: PROJECT of PARALLEL_2D; radon_back.cu: its transpose. */
cudaError_t tess_cuda_radon_project(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
cudaError_t tess_cuda_radon_back(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* rays.cu: PROJECT in 3-D; rays_back.cu: its transpose. */
cudaError_t tess_cuda_rays_project(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
cudaError_t tess_cuda_rays_back(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* fdk.cu: RAY_COSINE and RAY_SPREAD. */
cudaError_t tess_cuda_fdk(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
