/* hopper.h: the kernel families for sm_90a behind the row `tess_cuda_hopper`. */
#ifndef TESS_CUDA_HOPPER_H
#define TESS_CUDA_HOPPER_H

#include "cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

extern const tess_cuda_launch tess_hopper_conv; /* at least 16 input and output channels, multiples of 8 */
extern const tess_cuda_launch tess_hopper_head; /* an fp32 image to at most 64 channels */
extern const tess_cuda_launch tess_hopper_grad; /* the gradient of a convolution's parameters */
extern const tess_cuda_launch tess_hopper_tail; /* at most 64 channels to an fp32 image */

/* Load the kernels that take a mask. */
cudaError_t tess_hopper_conv_load_masked(void);
cudaError_t tess_hopper_head_load_masked(void);

#ifdef __cplusplus
}
#endif
#endif
