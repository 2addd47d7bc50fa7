/* generic.h: the kernel families of the row "generic", which run on every card since Ampere. The op
 * description alone selects the family, so that a window and the whole image use the same one. */
#ifndef TESS_CUDA_GENERIC_H
#define TESS_CUDA_GENERIC_H

#include "cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/* conv.cu: every convolution, fp32 products. */
cudaError_t tess_cuda_conv(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* head.cu: few input channels, many output channels, by matrix instructions. */
bool tess_cuda_head_fits(const tess_op *op);
cudaError_t tess_cuda_head(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* tail.cu: many input channels, few output channels, by matrix instructions. */
bool tess_cuda_tail_fits(const tess_op *op);
cudaError_t tess_cuda_tail(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* pixels.cu: one tap, few channels that are no multiples of 8. */
bool tess_cuda_pixels_fits(const tess_op *op);
cudaError_t tess_cuda_pixels(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);
/* Load the kernels of head.cu and tail.cu for an fp32 image at one end. One job may alternate between these and the Hopper kernels,
 * and loading a kernel waits until the card is idle. */
cudaError_t tess_cuda_head_load(void);
cudaError_t tess_cuda_tail_load(void);
/* Loads pixels.cu's in fp32, so that no graph that is captured waits for it. */
cudaError_t tess_cuda_pixels_load(void);
/* pointwise.cu: max-pool, upsampling, addition, activations. */
cudaError_t tess_cuda_pointwise(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
