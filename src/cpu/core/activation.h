/* activation.h: activations and the exponential under them, as arithmetic alone, so that the compiler makes vectors of the loops
 * around them. The exponential is Cephes' (two parts of ln 2, a polynomial of degree 5), good to 2 in the last place; NaN stays. */
#ifndef TESS_CPU_ACTIVATION_H
#define TESS_CPU_ACTIVATION_H

#include "op/op.h"

/* Below -87 the result is 1e-38 instead of less, above 88 it is 2e38 instead of more. */
static inline float tess_cpu_exp(float x)
{
    const float magic =
        12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, which the low bits then hold */
    union {
        float f;
        uint32_t u;
    } whole, power;
    x = x < -87.0f ? -87.0f : x;
    x = x > 88.0f ? 88.0f : x;
    whole.f = x * 1.44269504f + magic;
    const float n = whole.f - magic;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float sum = 1.9875691500e-4f;
    sum = sum * r + 1.3981999507e-3f;
    sum = sum * r + 8.3334519073e-3f;
    sum = sum * r + 4.1665795894e-2f;
    sum = sum * r + 1.6666665459e-1f;
    sum = sum * r + 5.0000001201e-1f;
    power.u = (whole.u + 127u) << 23;
    return (sum * r * r + r + 1.0f) * power.f;
}

static inline float tess_cpu_activated(tess_activation activation, float value)
{
    if (activation == TESS_SILU)
        return value / (1.0f + tess_cpu_exp(-value));
    return activation == TESS_RELU && value < 0 ? 0 : value;
}

#endif
