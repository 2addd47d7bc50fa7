/* rows.h: the list of the NVIDIA device's kernels. */
#ifndef TESS_CUDA_ROWS_H
#define TESS_CUDA_ROWS_H

#include "cuda/core/cuda.h"
#include "device/kernel.h"

extern const tess_cuda_launch tess_cuda_hopper __attribute__((weak));

extern const tess_kernel *const tess_cuda_kernels[];
extern const tess_kernel tess_cuda_volume, tess_cuda_cudnn_row, tess_cuda_norm_clusters, tess_cuda_group_norm;

/* True for layers of networks on images, without a map: the ops of the rows hopper, cudnn and generic. */
bool tess_cuda_is_image_layer(const tess_op *op);
/* True for ops that the rows hopper, cudnn and generic may do: these layers, and the gradients of their parameters.
 * The fastest row is measured for each class. */
bool tess_cuda_has_choice(const tess_op *op);
/* Bytes of packed parameters of a layer; 0 for other ops. */
size_t tess_cuda_weight_bytes(const tess_op *op);
void tess_cuda_pack_op(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                       const float *values, void *packed);
/* Loads the kernels when the card is opened. */
tess_status tess_cuda_load_kernels(int capability, tess_error *error) TESS_MUST_CHECK;

#endif
