/* bf16_finish.h: finishes a pixel: sums to stored bf16. It is included by files that are compiled for one
 * instruction set, so that the loops below use its vector instructions. */
#ifndef TESS_CPU_BF16_FINISH_H
#define TESS_CPU_BF16_FINISH_H

#include "cpu/conv/kernels.h"
#include "tensor/tensor.h"

/* Has no branches, so that it vectorises; otherwise the same as tess_float_to_bf16. */
static inline uint16_t round_to_bf16(float value)
{
    union {
        float f;
        uint32_t u;
    } bits = {.f = value};
    uint32_t rounded = (bits.u + 0x7fffu + (bits.u >> 16 & 1u)) >> 16, quiet = bits.u >> 16 | 0x40u;
    return (uint16_t)((bits.u & 0x7fffffffu) > 0x7f800000u ? quiet : rounded);
}

static inline __attribute__((always_inline)) void finish_channels(const tess_bf16_pixel *pixel,
                                                                  const float *sums, int64_t count)
{
    float value[64];
    for (int64_t c = 0; c < count; c++)
        value[c] = sums[c];
    if (pixel->bias)
        for (int64_t c = 0; c < count; c++)
            value[c] += pixel->bias[c];
    if (pixel->map)
        for (int64_t c = 0; c < count; c++)
            value[c] += *pixel->map;
    for (int r = 0; r < 2; r++) {
        const float *wide = pixel->residual[r];
        const uint16_t *half = pixel->residual[r];
        if (wide && pixel->f32)
            for (int64_t c = 0; c < count; c++)
                value[c] += wide[c];
        else if (half)
            for (int64_t c = 0; c < count; c++)
                value[c] += tess_bf16_to_float(half[c]);
    }
    const float *wide_mask = pixel->mask;
    const uint16_t *half_mask = pixel->mask;
    if (wide_mask && pixel->f32)
        for (int64_t c = 0; c < count; c++)
            value[c] = wide_mask[c] > 0 ? value[c] : 0;
    else if (half_mask)
        for (int64_t c = 0; c < count; c++)
            value[c] = tess_bf16_to_float(half_mask[c]) > 0 ? value[c] : 0;
    if (pixel->relu)
        for (int64_t c = 0; c < count; c++)
            value[c] = value[c] < 0 ? 0 : value[c];
    float *wide_out = pixel->out;
    uint16_t *half_out = pixel->out;
    if (pixel->f32)
        for (int64_t c = 0; c < count; c++)
            wide_out[c] = value[c];
    else
        for (int64_t c = 0; c < count; c++)
            half_out[c] = round_to_bf16(value[c]);
}

/* `block` is a constant at the call, so a full block is unrolled and only the last channels use the general
 * loop. */
static inline __attribute__((always_inline)) void finish_pixel(const tess_bf16_pixel *pixel,
                                                               const float *sums, int64_t block)
{
    if (pixel->channels == block)
        finish_channels(pixel, sums, block);
    else
        finish_channels(pixel, sums, pixel->channels);
}

#endif
