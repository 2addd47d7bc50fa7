/* load.h: functions of the driver, found at run time; and kernels that are there before they are needed. */
#ifndef TESS_CUDA_LOAD_H
#define TESS_CUDA_LOAD_H

#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function of the driver as version `since` (12040 for 12.4) declares it; NULL: this driver has none. */
void *tess_cuda_driver_function(const char *name, unsigned since);
/* Loads a kernel into the current context and, unless `shared_bytes` is 0, raises its limit of shared memory. Left to
 * itself the runtime loads a kernel when it is first launched, or first part of a graph, and waits until the card is
 * idle to do so. */
cudaError_t tess_cuda_load(const void *kernel, int shared_bytes);

#ifdef __cplusplus
}
#endif

#endif
