#include "cuda/core/cuda.h"
#include "cuda/core/values.cuh"

/* One thread per value. cuDNN's prebuilt kernels only take a bias of the tensors' type, and packed weights
 * have an fp32 bias. It is rounded before each run (2 us), so that all kernels share one packed form. */
template <typename T> __global__ void round_kernel(const float *from, T *to, int64_t count)
{
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        to[i] = tess_rounded<T>(from[i]);
}

extern "C" cudaError_t tess_cudnn_round(const float *from, void *to, int64_t count, tess_dtype dtype,
                                        cudaStream_t stream)
{
    const unsigned threads = 128, blocks = (unsigned)((count + threads - 1) / threads);
    if (dtype == TESS_F16)
        round_kernel<<<blocks, threads, 0, stream>>>(from, (__half *)to, count);
    else
        round_kernel<<<blocks, threads, 0, stream>>>(from, (__nv_bfloat16 *)to, count);
    return cudaGetLastError();
}
