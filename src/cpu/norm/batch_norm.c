/* Batch norm as it is trained, forward and backward, by the passes of the norms with one table for all images. */
#include <math.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"
#include "cpu/norm/passes.h"

/* Rows of an image are divided only as far as a small batch needs it: all sums together stay small. */
static size_t divide(const tess_tensor *in, void *workspace, tess_norm_passes *p)
{
    tess_norm_divide(p, in, tess_max_i64(1, TESS_NORM_PARTS / in->n));
    const size_t sums = (size_t)(in->n * p->parts * 2 * in->c), table = 3 * (size_t)in->c;
    if (workspace) {
        p->sums = workspace;
        p->table = (float *)(p->sums + sums);
        p->back = p->table + table;
    }
    return sums * sizeof(double) + 2 * table * sizeof(float);
}

static const tess_tensor *values_of(const tess_op *op)
{
    return &op->in[op->kind == TESS_OP_BATCH_NORM_TRAIN ? 0 : 1];
}

static void batch_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    tess_norm_passes p;
    *needs = (tess_op_needs){.block = 1, .workspace = divide(values_of(op), NULL, &p)};
}

static double count_of(const tess_norm_passes *p)
{
    return (double)p->in->n * (double)p->rows * (double)p->in->w;
}

/* The two sums of a channel over all parts of all images, in their order. */
static void sum_channel(const tess_norm_passes *p, int64_t c, double sums[2])
{
    sums[0] = sums[1] = 0;
    for (int64_t part = 0; part < p->in->n * p->parts; part++) {
        sums[0] += p->sums[part * 2 * p->in->c + c];
        sums[1] += p->sums[(part * 2 + 1) * p->in->c + c];
    }
}

static void train(const tess_cpu *cpu, const tess_op *op, const tess_op_buffers *buffers)
{
    tess_pool *pool = cpu->pool;
    const int64_t channels = op->in[0].c;
    const float *params = buffers->in[1];
    float *statistics = buffers->out[1], *running = op->outputs > 2 ? buffers->out[2] : NULL;
    tess_norm_passes p = {.kernels = cpu->f32->norm,
                          .activation = op->activation,
                          .out = &op->out[0],
                          .in_data = buffers->in[0],
                          .out_data = buffers->out[0]};
    divide(&op->in[0], buffers->workspace, &p);
    const double count = count_of(&p), momentum = op->batch_norm.momentum;
    tess_norm_sum(pool, &p);
    for (int64_t c = 0; c < channels; c++) {
        double sums[2];
        sum_channel(&p, c, sums);
        const double mean = sums[0] / count, squares = sums[1] / count - mean * mean,
                     variance = squares < 0 ? 0 : squares,
                     inverse = 1 / sqrt(variance + op->batch_norm.epsilon), factor = params[c] * inverse;
        statistics[c] = p.table[c] = (float)mean;
        statistics[channels + c] = (float)inverse;
        p.table[channels + c] = (float)factor;
        p.table[2 * channels + c] = (float)(params[channels + c] + ((double)p.table[c] - mean) * factor);
        if (running) {
            const double unbiased = variance * count / (count > 1 ? count - 1 : 1);
            running[c] += (float)(momentum * (mean - (double)running[c]));
            running[channels + c] += (float)(momentum * (unbiased - (double)running[channels + c]));
        }
    }
    tess_norm_apply(pool, &p);
}

/* With x^ = (x - mean) / deviation and m values a channel: the gradient of x is
 * (g - sum(g) / m - x^ sum(g x^) / m) weight / deviation. */
static void train_grad(const tess_cpu *cpu, const tess_op *op, const tess_op_buffers *buffers)
{
    tess_pool *pool = cpu->pool;
    const int64_t channels = op->in[1].c;
    const float *statistics = buffers->in[2], *params = buffers->in[3];
    float *out = buffers->out[1];
    tess_norm_passes p = {.out = &op->out[0],
                          .gradient = &op->in[0],
                          .in_data = buffers->in[1],
                          .gradient_data = buffers->in[0],
                          .out_data = buffers->out[0]};
    divide(&op->in[1], buffers->workspace, &p);
    const double count = count_of(&p);
    for (int64_t c = 0; c < channels; c++) /* without an activation, the passes use the centre alone */
        p.table[c] = statistics[c];
    tess_norm_sum_gradients(pool, &p);
    for (int64_t c = 0; c < channels; c++) {
        double sums[2];
        sum_channel(&p, c, sums);
        const double inverse = statistics[channels + c], factor = params[c] * inverse,
                     product = sums[1] * inverse;
        p.back[c] = (float)factor;
        p.back[channels + c] = (float)(-factor * sums[0] / count);
        p.back[2 * channels + c] = (float)(-factor * inverse * product / count);
        out[c] = (float)(product + (op->batch_norm.accumulate ? (double)out[c] : 0));
        out[channels + c] = (float)(sums[0] + (op->batch_norm.accumulate ? (double)out[channels + c] : 0));
    }
    tess_norm_apply_gradients(pool, &p);
}

static void batch_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                      tess_stream *stream)
{
    (void)state, (void)stream;
    (op->kind == TESS_OP_BATCH_NORM_TRAIN ? train : train_grad)(tess_cpu_of(device), op, buffers);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_gradients_refuses_fast(
        device, op, op->kind == TESS_OP_BATCH_NORM_TRAIN || op->kind == TESS_OP_BATCH_NORM_GRAD, why);
}

const tess_kernel tess_cpu_batch_norm = {
    .name = "batch norm", .refuses = refuses, .needs = batch_needs, .run = batch_run};
