/* sums.cuh: the sum over a block, by a tree of a fixed shape. */
#ifndef TESS_CUDA_SUMS_CUH
#define TESS_CUDA_SUMS_CUH

/* All threads get the sum; a second call needs no barrier between. */
template <int THREADS> __device__ __forceinline__ double tess_block_sum(double value)
{
    __shared__ double sums[THREADS];
    __syncthreads();
    sums[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

#endif
