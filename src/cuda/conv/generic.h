/* generic.h: the kernel families behind the generic engine, which run on every card since Ampere. Which one does
 * an op follows from its description alone, so that a window and the whole image take the same path. */
#ifndef TESS_CUDA_GENERIC_H
#define TESS_CUDA_GENERIC_H

#include "cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* conv.cu: every convolution, fp32 products. */
cudaError_t tess_cuda_conv(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* head.cu: a few channels in, many out, by matrix instructions. */
bool tess_cuda_head_fits(const tess_op *op);
cudaError_t tess_cuda_head(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* tail.cu: many channels in, a few out, by matrix instructions. */
bool tess_cuda_tail_fits(const tess_op *op);
cudaError_t tess_cuda_tail(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* Their kernels with an fp32 image at one end, onto the card: the sizes of one job may want these and the
 * Hopper kernels by turns, and loading one waits until the card is idle. */
cudaError_t tess_cuda_head_load(void);
cudaError_t tess_cuda_tail_load(void);
/* pointwise.cu: max-pool, upsampling, addition, activations. */
cudaError_t tess_cuda_pointwise(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
