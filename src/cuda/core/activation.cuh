/* activation.cuh: activations of one value. */
#ifndef TESS_CUDA_ACTIVATION_CUH
#define TESS_CUDA_ACTIVATION_CUH

#include "op/op.h"

/* The hardware exponential has a relative error of about 1e-6 for large |value|, which is enough for SiLU. */
static __device__ __forceinline__ float tess_activated(tess_activation activation, float value)
{
    if (activation == TESS_SILU)
        return __fdividef(value, 1.0f + __expf(-value));
    return activation == TESS_RELU && value < 0 ? 0 : value;
}

#endif
