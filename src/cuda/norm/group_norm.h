/* group_norm.h: the launchers of group_norm.cu and norm_cluster.cu. Parameters are fp32 in every precision: c weights,
 * then c biases. */
#ifndef TESS_CUDA_GROUP_NORM_H
#define TESS_CUDA_GROUP_NORM_H

#include "cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

size_t tess_cuda_group_norm_workspace(const tess_op *op);
cudaError_t tess_cuda_group_norm_run(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);

/* In clusters, one launch: the reason why not, or NULL. */
const char *tess_cuda_norm_cluster_refuses(const tess_op *op, int capability);
/* Loads the kernel; *fits: the card can hold a cluster of it. */
cudaError_t tess_cuda_norm_cluster_load(const tess_op *op, bool *fits);
/* Tensors that do not start at a multiple of 16 bytes are left to the launcher above, with its workspace. */
cudaError_t tess_cuda_norm_cluster_run(const tess_op *op, const tess_op_buffers *buffers,
                                       cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
