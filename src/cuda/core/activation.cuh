/* activation.cuh: activations of one value, and their gradients. */
#ifndef TESS_CUDA_ACTIVATION_CUH
#define TESS_CUDA_ACTIVATION_CUH

#include "cuda/core/cuda.h"

/* The hardware exponential has a relative error of about 1e-6 for large |value|, which is enough for SiLU. */
static __device__ __forceinline__ float tess_activated(tess_activation activation, float value)
{
    if (activation == TESS_SILU)
        return __fdividef(value, 1.0f + __expf(-value));
    return activation == TESS_RELU && value < 0 ? 0 : value;
}

/* `gradient` times the slope of the activation. `value` is its input; of a ReLU its output will do. */
static __device__ __forceinline__ float tess_activated_grad(tess_activation activation, float value,
                                                            float gradient)
{
    if (activation == TESS_SILU) {
        const float s = __fdividef(1.0f, 1.0f + __expf(-value));
        return gradient * (s * (1.0f + value * (1.0f - s)));
    }
    return activation == TESS_RELU && !(value > 0) ? 0 : gradient;
}

#endif
