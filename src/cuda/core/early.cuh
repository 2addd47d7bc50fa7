/* early.cuh: programmatic launch: the blocks of a kernel may start while the last blocks of the kernel before it end. They
 * wait before they read or write anything that an earlier kernel writes or reads. On cards before Hopper all of this has no
 * effect. */
#ifndef TESS_CUDA_EARLY_CUH
#define TESS_CUDA_EARLY_CUH

#include <cuda_runtime.h>

/* Waits until the results of the previous grid are visible. */
static __device__ __forceinline__ void wait_for_grid_before(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* Lets the blocks of the next grid start. */
static __device__ __forceinline__ void let_next_grid_start(void)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

enum { TESS_EARLY_FEW = 128 };

/* The first call of a kernel that waits before it does anything. Only a small grid lets the next one start at once: beside
 * those of a large grid, blocks of the next one would be spread unevenly over the multiprocessors. */
static __device__ __forceinline__ void begin_early(void)
{
    wait_for_grid_before();
    if (gridDim.x * gridDim.y * gridDim.z <= TESS_EARLY_FEW)
        let_next_grid_start();
}

/* A launch whose blocks may start early; the threads of the kernel call wait_for_grid_before or begin_early. */
template <typename... TAKEN, typename... GIVEN>
static cudaError_t tess_launch_early(void (*kernel)(TAKEN...), dim3 grid, unsigned threads, size_t shared,
                                     cudaStream_t stream, const GIVEN &...given)
{
    int device = 0, major = 0;
    cudaError_t result = cudaGetDevice(&device);
    if (result == cudaSuccess)
        result = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    if (result != cudaSuccess)
        return result;
    cudaLaunchAttribute early[1];
    early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early[0].val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = grid;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = early;
    config.numAttrs = major >= 9 ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, given...);
}

#endif
