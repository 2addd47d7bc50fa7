/* Backward ops and average pooling as plain loops in fp64, and the kernel row of all of them (TESSERA_ISA=reference). */
#include "base/checked.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"
#include "cpu/reference/reference.h"
#include "cpu/reference/values.h"

static double load(const tess_op *op, const tess_op_buffers *buffers, int input, const int64_t at[4],
                   int64_t c)
{
    const tess_tensor *t = &op->in[input];
    return tess_reference_load(t, buffers->in[input],
                               tess_reference_place(t, at[0], at[1], at[2], at[3]) + c);
}

static double derivative(tess_activation activation, double value)
{
    const double s = 1 / (1 + exp(-value));
    switch (activation) {
    case TESS_LINEAR:
        return 1;
    case TESS_RELU:
        return value > 0;
    case TESS_SILU:
        return s * (1 + value * (1 - s));
    }
    return NAN;
}

double tess_reference_before_activation(tess_activation activation, double gradient, double value)
{
    return gradient * derivative(activation, value);
}

/* The gradient of a window goes to the first of its largest values. */
static double pool_at(const tess_op *op, const tess_op_buffers *buffers, const int64_t at[4], int64_t c)
{
    const int64_t sy = op->stride[TESS_HEIGHT], sx = op->stride[TESS_WIDTH], y = at[2] / sy, x = at[3] / sx;
    const int64_t window[4] = {at[0], at[1], y, x}, own = at[2] % sy * sx + at[3] % sx;
    const double value = load(op, buffers, 1, at, c);
    if (y >= op->in[0].h || x >= op->in[0].w)
        return 0;
    for (int64_t i = 0; i < sy * sx; i++) {
        const int64_t other[4] = {at[0], at[1], y * sy + i / sx, x * sx + i % sx};
        const double rival = load(op, buffers, 1, other, c);
        if (rival > value || (i < own && rival >= value))
            return 0;
    }
    return load(op, buffers, 0, window, c);
}

static double upsample_at(const tess_op *op, const tess_op_buffers *buffers, const int64_t at[4], int64_t c)
{
    const int64_t sy = op->stride[TESS_HEIGHT], sx = op->stride[TESS_WIDTH];
    double sum = 0;
    for (int64_t i = 0; i < sy * sx; i++) {
        const int64_t from[4] = {at[0], at[1], at[2] * sy + i / sx, at[3] * sx + i % sx};
        sum += load(op, buffers, 0, from, c);
    }
    return sum;
}

static double share_at(const tess_op *op, const tess_op_buffers *buffers, const int64_t at[4], int64_t c)
{
    const int64_t sy = op->stride[TESS_HEIGHT], sx = op->stride[TESS_WIDTH];
    const int64_t window[4] = {at[0], at[1], at[2] / sy, at[3] / sx};
    const bool whole = window[2] < op->in[0].h && window[3] < op->in[0].w;
    return whole ? load(op, buffers, 0, window, c) / (double)(sy * sx) : 0;
}

static double gradient_at(const tess_op *op, const tess_op_buffers *buffers, const int64_t at[4], int64_t c)
{
    const bool pool = op->kind == TESS_OP_POOL_GRAD;
    if (op->kind == TESS_OP_AVERAGE_POOL)
        return upsample_at(op, buffers, at, c) / (double)(op->stride[TESS_HEIGHT] * op->stride[TESS_WIDTH]);
    if (op->kind == TESS_OP_ACTIVATE_GRAD)
        return tess_reference_before_activation(op->activation, load(op, buffers, 0, at, c),
                                                load(op, buffers, 1, at, c));
    const double sum = pool                                    ? pool_at(op, buffers, at, c)
                       : op->kind == TESS_OP_AVERAGE_POOL_GRAD ? share_at(op, buffers, at, c)
                                                               : upsample_at(op, buffers, at, c);
    const int added = pool ? 2 : 1;
    return sum + (op->inputs > added ? load(op, buffers, added, at, c) : 0);
}

/* Not in place, except for ACTIVATE_GRAD. */
static void pointwise(const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_tensor *out = &op->out[0];
    for (int64_t i = 0; i < tess_cpu_values(out); i++) {
        const int64_t pixel = i / out->c, row = pixel / out->w, slice = row / out->h;
        const int64_t at[4] = {slice / out->d, slice % out->d, row % out->h, pixel % out->w};
        tess_reference_store(out, buffers->out[0],
                             tess_reference_place(out, at[0], at[1], at[2], at[3]) + i % out->c,
                             gradient_at(op, buffers, at, i % out->c));
    }
}

void tess_reference_gradient(const tess_op *op, const tess_op_buffers *buffers)
{
    if (op->kind == TESS_OP_ATTENTION_GRAD)
        tess_reference_attention_grad(op, buffers);
    else if (op->kind == TESS_OP_GROUP_NORM_GRAD)
        tess_reference_group_norm_grad(op, buffers);
    else if (op->kind == TESS_OP_BATCH_NORM_GRAD)
        tess_reference_batch_norm_grad(op, buffers);
    else if (op->kind == TESS_OP_BATCH_NORM_TRAIN)
        tess_reference_batch_norm(op, buffers);
    else
        pointwise(op, buffers);
}

size_t tess_reference_gradient_workspace(const tess_op *op)
{
    const tess_tensor *in = &op->in[1];
    int64_t values = 0;
    if (op->kind == TESS_OP_ATTENTION_GRAD)
        values = 3 * in->d * in->h * in->w;
    else if (op->kind == TESS_OP_GROUP_NORM_GRAD)
        values = 2 * in->n * in->c;
    return (size_t)values * sizeof(double);
}

static void reference_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs = (tess_op_needs){.block = 1, .workspace = tess_reference_gradient_workspace(op)};
}

static void reference_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)device, (void)state, (void)stream;
    tess_reference_gradient(op, buffers);
}

const tess_kernel tess_cpu_gradients_reference = {.name = "gradients reference",
                                                  .refuses = tess_cpu_gradients_refuses,
                                                  .needs = reference_needs,
                                                  .run = reference_run};
