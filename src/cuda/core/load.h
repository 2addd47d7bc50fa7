/* load.h: looks up driver functions at run time, and loads kernels before they are needed. */
#ifndef TESS_CUDA_LOAD_H
#define TESS_CUDA_LOAD_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A driver function as declared by version `since` (12040 for 12.4); NULL if this driver lacks it. */
void *tess_cuda_driver_function(const char *name, unsigned since);
/* Loads a kernel into the current context and, unless `shared_bytes` is 0, raises its limit of shared memory.
 * By default the runtime loads a kernel at its first launch or first use in a graph, and waits for an idle
 * card to do so. */
cudaError_t tess_cuda_load(const void *kernel, int shared_bytes);

#ifdef __cplusplus
}
#endif

#endif
