/* activation.cuh: activations of one value. */
#ifndef TESS_CUDA_ACTIVATION_CUH
#define TESS_CUDA_ACTIVATION_CUH

#include "op/op.h"

/* The hardware's exponential is off by some 1e-6 of itself where |value| is large, and SiLU needs no more there. */
static __device__ __forceinline__ float tess_activated(tess_activation activation, float value)
{
    if (activation == TESS_SILU)
        return __fdividef(value, 1.0f + __expf(-value));
    return activation == TESS_RELU && value < 0 ? 0 : value;
}

#endif
