/* cudnn_engine.h: cuDNN's engines, and the numbers that name them (private to cudnn*.c). */
#ifndef TESS_CUDA_CUDNN_ENGINE_H
#define TESS_CUDA_CUDNN_ENGINE_H

#include "cuda/cudnn/cudnn_graph.h"

/* Ids of what cuDNN's guess proposes for the graph and we accept, in its order. */
int tess_cudnn_proposals(const tess_op *conv, bool any_size, cudnnBackendDescriptor_t graph,
                         tess_cudnn_bag *bag, int64_t *ids, int most);

/* Whether the id belongs to a graph of any size, whose engines are compiled. */
bool tess_cudnn_any_size(int64_t id);

/* The engine with its settings, for any graph of the class; NULL when the bag has failed. Writes its name. */
cudnnBackendDescriptor_t tess_cudnn_engine(tess_cudnn_bag *bag, cudnnBackendDescriptor_t graph, int64_t id,
                                           char *text, size_t size);

/* Where compiled kernels of this class are kept; NULL when there is no such place. */
cudnnBackendDescriptor_t tess_cudnn_kernel_cache(tess_cudnn *cudnn, const tess_op *conv,
                                                 cudnnBackendDescriptor_t graph);

#endif
