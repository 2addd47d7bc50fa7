/* cudnn_graph.h: an op as cuDNN sees it (private to cudnn*.c). */
#ifndef TESS_CUDA_CUDNN_GRAPH_H
#define TESS_CUDA_CUDNN_GRAPH_H

#include "cuda/cudnn/cudnn_api.h"

/* The tensors of a graph; also their ids in cuDNN, from 1. */
enum {
    TESS_CUDNN_IN,
    TESS_CUDNN_WEIGHTS,
    TESS_CUDNN_OUT,
    TESS_CUDNN_BIAS,
    TESS_CUDNN_RESIDUAL,
    TESS_CUDNN_TENSORS = TESS_CUDNN_RESIDUAL + TESS_OP_RESIDUALS
};

/* The op as equal convolutions over moved pointers: one, or the parts of a transposed convolution. */
typedef struct tess_cudnn_parts {
    tess_op conv;
    int count;
    int64_t columns; /* parts beside each other in a row of the kernel */
    int64_t weights; /* elements from part to part */
} tess_cudnn_parts;

void tess_cudnn_split(const tess_op *op, tess_cudnn_parts *parts);
/* Where the tensors of part `part` of the op are, but for the bias; absent ones are left alone. */
void tess_cudnn_pointers(const tess_op *op, const tess_cudnn_parts *parts, int part,
                         const tess_op_buffers *buffers, void *pointers[TESS_CUDNN_TENSORS]);

/* Whether its graph can be the one that cuDNN has kernels ready for. */
bool tess_cudnn_ready_made(const tess_op *conv);
/* Whether the graph reads a bias: of the tensors' type, or of any size fp32. */
bool tess_cudnn_adds_bias(const tess_op *conv, bool any_size);
/* The finished graph of one part, owned by the bag; NULL when the bag has failed. `any_size`: what is compiled for it
 * serves every size of the class. */
cudnnBackendDescriptor_t tess_cudnn_graph(tess_cudnn *cudnn, const tess_op *conv, bool any_size,
                                          tess_cudnn_bag *bag);

#endif
