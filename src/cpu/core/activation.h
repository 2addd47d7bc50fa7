/* activation.h: activations and the exponential that they use, without branches or calls, so that the compiler
 * vectorises the loops around them. The exponential is that of Cephes (ln 2 in two parts, a polynomial of
 * degree 5), with an error of 2 units in the last place; NaN stays NaN. */
#ifndef TESS_CPU_ACTIVATION_H
#define TESS_CPU_ACTIVATION_H

#include "op/op.h"

typedef union tess_float_bits {
    float f;
    uint32_t u;
} tess_float_bits;

/* `yes` if the condition holds, else `no`. It uses masks, because compilers turn two conditions in a row into
 * branches, which they cannot vectorise. */
static inline float tess_cpu_select(bool condition, float yes, float no)
{
    const tess_float_bits a = {.f = yes}, b = {.f = no};
    const uint32_t mask = (uint32_t)0 - (uint32_t)condition;
    const tess_float_bits chosen = {.u = (a.u & mask) | (b.u & ~mask)};
    return chosen.f;
}

/* Below -87 the result is 1e-38 instead of less; above 88 it is 2e38 instead of more. */
static inline float tess_cpu_exp(float x)
{
    const float magic =
        12582912.0f; /* 1.5 * 2^23: adding it rounds to an integer, which the low bits then hold */
    x = tess_cpu_select(x < -87.0f, -87.0f, x);
    x = tess_cpu_select(x > 88.0f, 88.0f, x);
    const tess_float_bits whole = {.f = x * 1.44269504f + magic}, power = {.u = (whole.u + 127u) << 23};
    const float n = whole.f - magic;
    const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
    float sum = 1.9875691500e-4f;
    sum = sum * r + 1.3981999507e-3f;
    sum = sum * r + 8.3334519073e-3f;
    sum = sum * r + 4.1665795894e-2f;
    sum = sum * r + 1.6666665459e-1f;
    sum = sum * r + 5.0000001201e-1f;
    return (sum * r * r + r + 1.0f) * power.f;
}

/* Works on a few values in a buffer of the caller, between load and store. No loop then reads memory that it
 * may have written, which would prevent vectorisation. */
enum { TESS_CPU_FEW = 64 };

static inline void tess_cpu_activate(tess_activation activation, float *values, int64_t count)
{
    if (activation == TESS_SILU)
        for (int64_t i = 0; i < count; i++)
            values[i] = values[i] / (1.0f + tess_cpu_exp(-values[i]));
    else if (activation == TESS_RELU)
        for (int64_t i = 0; i < count; i++)
            values[i] = tess_cpu_select(values[i] < 0, 0, values[i]);
}

/* Multiplies gradients by the derivative of the activation: `values` are its inputs; of a ReLU also its outputs. */
static inline void tess_cpu_activation_grad(tess_activation activation, const float *values, float *gradients,
                                            int64_t count)
{
    if (activation == TESS_SILU)
        for (int64_t i = 0; i < count; i++) {
            const float s = 1.0f / (1.0f + tess_cpu_exp(-values[i]));
            gradients[i] = gradients[i] * s * (1.0f + values[i] * (1.0f - s));
        }
    else if (activation == TESS_RELU)
        for (int64_t i = 0; i < count; i++)
            gradients[i] = tess_cpu_select(values[i] > 0, gradients[i], 0);
}

/* Convert from and to fp32 or bf16. */
static inline void tess_cpu_load(tess_dtype dtype, const void *data, int64_t at, int64_t count, float *values)
{
    if (dtype == TESS_F32)
        for (int64_t i = 0; i < count; i++)
            values[i] = ((const float *)data)[at + i];
    else
        for (int64_t i = 0; i < count; i++)
            values[i] = tess_bf16_to_float(((const uint16_t *)data)[at + i]);
}

static inline void tess_cpu_store(tess_dtype dtype, void *data, int64_t at, int64_t count,
                                  const float *values)
{
    if (dtype == TESS_F32)
        for (int64_t i = 0; i < count; i++)
            ((float *)data)[at + i] = values[i];
    else
        for (int64_t i = 0; i < count; i++)
            ((uint16_t *)data)[at + i] = tess_float_to_bf16(values[i]);
}

#endif
