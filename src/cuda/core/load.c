#include "cuda/core/load.h"

#include <cuda.h>
#include <string.h>

typedef CUresult (*load_fn)(CUfunction);
enum { LOAD_SINCE = 12040 };

void *tess_cuda_driver_function(const char *name, unsigned since)
{
    void *entry = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050 /* CUDA 13 removed the older call */
    cudaError_t result = cudaGetDriverEntryPointByVersion(name, &entry, since, cudaEnableDefault, &found);
#else
    (void)since;
    cudaError_t result = cudaGetDriverEntryPoint(name, &entry, cudaEnableDefault, &found);
#endif
    return result == cudaSuccess && found == cudaDriverEntryPointSuccess ? entry : NULL;
}

/* cudaFuncGetAttributes registers a kernel. cuFuncLoad then loads its code; drivers without cuFuncLoad load it
 * with the attributes. */
cudaError_t tess_cuda_load(const void *kernel, int shared_bytes)
{
    struct cudaFuncAttributes ignored;
    cudaFunction_t function = NULL;
    cudaError_t result = cudaFuncGetAttributes(&ignored, kernel);
    if (result == cudaSuccess && shared_bytes > 0)
        result = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes);
    void *entry = result == cudaSuccess ? tess_cuda_driver_function("cuFuncLoad", LOAD_SINCE) : NULL;
    if (!entry)
        return result;
    load_fn load;
    memcpy(&load, &entry, sizeof load);
    result = cudaGetFuncBySymbol(&function, kernel);
    return result != cudaSuccess ? result : load(function) == CUDA_SUCCESS ? cudaSuccess : cudaErrorUnknown;
}
