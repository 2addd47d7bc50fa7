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

/* The op as equal convolutions at different pointers: one, or the parts of a transposed convolution. */
typedef struct tess_cudnn_parts {
    tess_op conv;
    int count;
    int64_t columns; /* parts per row of the kernel */
    int64_t weights; /* elements from one part to the next */
} tess_cudnn_parts;

void tess_cudnn_split(const tess_op *op, tess_cudnn_parts *parts);
/* The pointers of part `part` of the op, without the bias; entries of absent tensors are not written. */
void tess_cudnn_pointers(const tess_op *op, const tess_cudnn_parts *parts, int part,
                         const tess_op_buffers *buffers, void *pointers[TESS_CUDNN_TENSORS]);

/* The type of the result of a gradient. */
tess_dtype tess_cudnn_grad_type(const tess_op *op, bool any_size);

/* True if cuDNN has prebuilt kernels for its graph. */
bool tess_cudnn_ready_made(const tess_op *conv);
/* True if the graph reads a bias: of the tensors' type, or fp32 for graphs of any size. */
bool tess_cudnn_adds_bias(const tess_op *conv, bool any_size);
/* The finished graph of one part, owned by the bag; NULL if the bag has failed. `any_size`: code compiled for
 * the graph works for every size of the class; for a gradient, its result is rounded to the inputs' type. */
cudnnBackendDescriptor_t tess_cudnn_graph(tess_cudnn *cudnn, const tess_op *conv, bool any_size,
                                          tess_cudnn_bag *bag);

#endif
