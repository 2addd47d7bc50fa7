/* channels.cuh: the softmax over channels, by one block, for CHANNEL_MAP and PENALTY. */
#ifndef TESS_CUDA_CHANNEL_SOFTMAX_CUH
#define TESS_CUDA_CHANNEL_SOFTMAX_CUH

#include "cuda/core/sums.cuh"
#include "cuda/core/tensors.cuh"

static __device__ __forceinline__ double tess_temperature(const tess_op_softmax &s, const double *control)
{
    return fmax(s.least, s.start * pow(s.decay, control[TESS_CONTROL_EPOCH]));
}

/* All threads get the largest value; a second call needs no barrier between. */
template <int THREADS> __device__ __forceinline__ double tess_block_max(double value)
{
    __shared__ double most[THREADS];
    __syncthreads();
    most[threadIdx.x] = value;
    __syncthreads();
    for (int half = THREADS / 2; half > 0; half /= 2) {
        if ((int)threadIdx.x < half)
            most[threadIdx.x] = fmax(most[threadIdx.x], most[threadIdx.x + half]);
        __syncthreads();
    }
    return most[0];
}

/* softmax(values / temperature) into `shares`, which all threads may read afterwards. */
template <int THREADS>
__device__ __forceinline__ void tess_block_softmax(const float *values, int64_t count, double temperature,
                                                   double *shares)
{
    double most = (double)values[0], sum = 0;
    for (int64_t i = threadIdx.x; i < count; i += THREADS)
        most = fmax(most, (double)values[i]);
    most = tess_block_max<THREADS>(most);
    for (int64_t i = threadIdx.x; i < count; i += THREADS) {
        shares[i] = exp(((double)values[i] - most) / temperature);
        sum += shares[i];
    }
    sum = tess_block_sum<THREADS>(sum);
    for (int64_t i = threadIdx.x; i < count; i += THREADS)
        shares[i] /= sum;
    __syncthreads();
}

#endif
