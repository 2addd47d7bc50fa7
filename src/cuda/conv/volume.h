/* volume.h: layers of networks that have a depth or add a map, as passes of the kernels for images. */
#ifndef TESS_CUDA_VOLUME_H
#define TESS_CUDA_VOLUME_H

#include "cuda/core/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

static inline bool tess_cuda_is_volume(const tess_op *op)
{
    return tess_op_is_layer(op) &&
           (op->in[0].d != 1 || op->out[0].d != 1 || op->kernel[TESS_DEPTH] != 1 || op->mapped);
}

/* add_map.cu: out += map in every channel, then the ReLU if the op has one. */
cudaError_t tess_cuda_add_map(const tess_op *op, const tess_op_buffers *buffers, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
