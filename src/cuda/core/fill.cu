#include "cuda/core/cuda.h"
#include "cuda/core/values.cuh"

template <typename T> __global__ void fill_kernel(T *data, size_t count)
{
    const size_t step = (size_t)gridDim.x * blockDim.x;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += step) {
        const uint32_t mixed = (uint32_t)i * 2654435761u;
        data[i] = tess_rounded<T>((float)(int)(mixed >> 20) * (1.0f / 8192) - 0.25f);
    }
}

extern "C" cudaError_t tess_cuda_fill(void *data, size_t bytes, tess_dtype dtype, cudaStream_t stream)
{
    const unsigned blocks = 1024, threads = 256;
    if (dtype == TESS_F16)
        fill_kernel<<<blocks, threads, 0, stream>>>((__half *)data, bytes / 2);
    else if (dtype == TESS_BF16)
        fill_kernel<<<blocks, threads, 0, stream>>>((__nv_bfloat16 *)data, bytes / 2);
    else
        fill_kernel<<<blocks, threads, 0, stream>>>((float *)data, bytes / 4);
    return cudaGetLastError();
}
