/* statistics.h: what the kernels of op/statistics.h share. */
#ifndef TESS_CPU_STATISTICS_H
#define TESS_CPU_STATISTICS_H

#include <math.h>

#include "cpu/core/cpu.h"
#include "tensor/moments.h"

/* The conditions of the CPU for the three ops, for fast kernels and the reference. */
tess_status tess_cpu_statistics_refuses(const tess_op *op, tess_error *why) TESS_MUST_CHECK;
/* The same for a fast kernel that does ops of one kind. */
tess_status tess_cpu_statistics_refuses_fast(const tess_device *device, const tess_op *op, tess_op_kind kind,
                                             tess_error *why) TESS_MUST_CHECK;

static inline int64_t tess_cpu_pixels(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w;
}

/* The offset of pixel `at`, counted in the order of memory. */
static inline int64_t tess_cpu_pixel(const tess_tensor *t, int64_t at)
{
    const int64_t row = at / t->w, slice = row / t->h;
    return slice / t->d * t->stride_n + slice % t->d * t->stride_d + row % t->h * t->stride_h +
           at % t->w * t->stride_w;
}

/* MOMENTS of one image, of those that have a vector each; of other ops the op itself. */
static inline tess_op tess_cpu_moments_one(const tess_op *op)
{
    tess_op one = *op;
    for (int i = 0; i < op->inputs && op->moments.each; i++)
        one.in[i].n = 1;
    one.moments.each = false;
    return one;
}

/* Where image n of these is. */
static inline tess_op_buffers tess_cpu_moments_at(const tess_op *op, const tess_op_buffers *buffers,
                                                  int64_t n)
{
    tess_op_buffers at = *buffers;
    for (int i = 0; i < op->inputs; i++)
        at.in[i] = (const char *)buffers->in[i] +
                   (size_t)(n * op->in[i].stride_n) * tess_dtype_size(op->in[i].dtype);
    at.out[0] =
        (double *)buffers->out[0] + (size_t)n * tess_moments_values((int)op->in[0].c, op->moments.covariance);
    return at;
}

/* A float, read as bits. */
typedef uint32_t tess_float_bits __attribute__((may_alias));

/* True if a pixel has a part in statistics: the mask, if there is one, is not zero, and all values are finite. */
static inline bool tess_cpu_pixel_counts(const tess_op *op, const tess_op_buffers *buffers, int64_t at)
{
    const uint32_t infinity = 0x7f800000u;
    const tess_tensor *in = &op->in[0], *mask = &op->in[1];
    if (op->inputs > 1) {
        const int64_t place = tess_cpu_pixel(mask, at);
        const float value = mask->dtype == TESS_U8 ? (float)((const uint8_t *)buffers->in[1])[place]
                                                   : ((const float *)buffers->in[1])[place];
        if (!(value < 0) && !(value > 0))
            return false;
    }
    const tess_float_bits *bits = (const tess_float_bits *)buffers->in[0] + tess_cpu_pixel(in, at);
    uint32_t most = 0; /* the bits of finite magnitudes are below those of infinity */
    for (int64_t c = 0; c < in->c; c++) {
        const uint32_t magnitude = bits[c] & 0x7fffffffu;
        most = magnitude > most ? magnitude : most;
    }
    return most < infinity;
}

#endif
