/* cudnn_engine.h: cuDNN's engines and their ids (private to cudnn*.c). */
#ifndef TESS_CUDA_CUDNN_ENGINE_H
#define TESS_CUDA_CUDNN_ENGINE_H

#include "cuda/cudnn/cudnn_graph.h"

/* Writes the ids of the acceptable engines that cuDNN's heuristic proposes for the graph, in its order. */
int tess_cudnn_proposals(const tess_op *conv, bool any_size, cudnnBackendDescriptor_t graph,
                         tess_cudnn_bag *bag, int64_t *ids, int most);

/* True if the id belongs to a graph of any size, whose engines are compiled. */
bool tess_cudnn_any_size(int64_t id);

/* The engine with its settings, for any graph of the class; NULL if the bag has failed. Writes its name. */
cudnnBackendDescriptor_t tess_cudnn_engine(tess_cudnn_bag *bag, cudnnBackendDescriptor_t graph, int64_t id,
                                           char *text, size_t size);

/* The cache of compiled kernels for this class; NULL if there is none. */
cudnnBackendDescriptor_t tess_cudnn_kernel_cache(tess_cudnn *cudnn, const tess_op *conv,
                                                 cudnnBackendDescriptor_t graph);

#endif
