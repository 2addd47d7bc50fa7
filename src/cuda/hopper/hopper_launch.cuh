/* hopper_launch.cuh: launches the Hopper kernels: with as many blocks as can be resident, a raised limit of
 * shared memory, and programmatic launch: blocks of the next layer may start while the last blocks of this one
 * end, and wait before they read. */
#ifndef TESS_CUDA_HOPPER_LAUNCH_CUH
#define TESS_CUDA_HOPPER_LAUNCH_CUH

#include <cuda_runtime.h>

static inline int tess_multiprocessors(void)
{
    int device = 0, count = 0; /* queried each time: cards differ, and the runtime caches it */
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        return 1;
    return count;
}

template <typename GEOMETRY>
static cudaError_t tess_hopper_launch(void (*kernel)(GEOMETRY), const GEOMETRY &geometry, int tiles,
                                      int blocks_per_sm, int threads, int shared_bytes, cudaStream_t stream)
{
    const int most = tess_multiprocessors() * blocks_per_sm;
    cudaLaunchAttribute early[1];
    early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early[0].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3((unsigned)(tiles < most ? tiles : most));
    config.blockDim = dim3((unsigned)threads);
    config.dynamicSmemBytes = (size_t)shared_bytes;
    config.stream = stream;
    config.attrs = early;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, kernel, geometry);
}

#endif
