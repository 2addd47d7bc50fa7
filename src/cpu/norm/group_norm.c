/* Group norm in two passes over memory (passes.c). Between them, mean, variance, parameters, scale and shift of a
 * channel are combined into three numbers. */
#include "cpu/norm/group_norm.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/core/lines.h"

size_t tess_cpu_group_norm_weights(const tess_op *op)
{
    return 2 * (size_t)op->in[0].c * sizeof(float);
}

static void norm_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    tess_norm_passes p;
    tess_norm_divide(&p, &op->in[0], TESS_NORM_PARTS);
    const size_t channels = (size_t)(op->in[0].n * op->in[0].c);
    *needs = (tess_op_needs){.block = 1, .weights = tess_cpu_group_norm_weights(op)};
    needs->workspace = channels * ((size_t)p.parts * 2 * sizeof(double) + 3 * sizeof(float));
}

void tess_cpu_group_norm_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                              const float *values, void *packed)
{
    (void)device;
    float *to = (float *)packed + (param == TESS_PARAM_BIAS ? op->in[0].c : 0) + first;
    memcpy(to, values, (size_t)count * sizeof(float));
}

void tess_cpu_scale_shift(const tess_group_norm *norm, int64_t n, int64_t c, double *scale, double *shift)
{
    float values[2] = {0, 0};
    if (norm->more) {
        const int64_t at = (norm->more->n > 1 ? n * norm->more->stride_n : 0) + c;
        tess_cpu_load(norm->more->dtype, norm->more_data, at, 1, &values[0]);
        tess_cpu_load(norm->more->dtype, norm->more_data, at + norm->passes.in->c, 1, &values[1]);
    }
    *scale = 1 + (double)values[0];
    *shift = (double)values[1];
}

/* Sets the three numbers of a channel, with scale and shift included. */
static void set_channel(const tess_group_norm *norm, int64_t n, int64_t c, double mean, double deviation)
{
    const int64_t channels = norm->passes.in->c;
    float *table = norm->passes.table + n * norm->passes.step;
    double scale, shift;
    tess_cpu_scale_shift(norm, n, c, &scale, &shift);
    const double factor = norm->params[c] / deviation * scale,
                 offset = norm->params[channels + c] * scale + shift;
    table[c] = (float)mean;
    table[channels + c] = (float)factor;
    table[2 * channels + c] = (float)(offset + ((double)table[c] - mean) * factor);
}

/* An item is a group of an image. */
static void table_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const tess_group_norm *norm = arg;
    const tess_norm_passes *p = &norm->passes;
    const int64_t channels = p->in->c, width = channels / norm->groups, n = item / norm->groups,
                  first = item % norm->groups * width;
    double value = 0, square = 0;
    for (int64_t part = 0; part < p->parts; part++) {
        const double *sums = p->sums + (n * p->parts + part) * 2 * channels;
        for (int64_t c = first; c < first + width; c++) {
            value += sums[c];
            square += sums[channels + c];
        }
    }
    const double count = (double)p->rows * (double)p->in->w * (double)width, mean = value / count,
                 variance = square / count - mean * mean;
    const double deviation = sqrt((variance < 0 ? 0 : variance) + norm->epsilon);
    for (int64_t c = first; c < first + width; c++)
        set_channel(norm, n, c, mean, deviation);
    if (norm->statistics) {
        norm->statistics[2 * item] = mean;
        norm->statistics[2 * item + 1] = 1 / deviation;
    }
}

void tess_cpu_group_norm_table(tess_pool *pool, const tess_group_norm *norm)
{
    tess_norm_sum(pool, &norm->passes);
    tess_pool_run(pool, norm->passes.in->n * norm->groups, table_item, (void *)norm);
}

static void norm_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    tess_pool *pool = tess_cpu_of(device)->pool;
    tess_group_norm norm = {.groups = op->group_norm.groups,
                            .epsilon = op->group_norm.epsilon,
                            .params = buffers->weights,
                            .more = op->inputs > 1 ? &op->in[1] : NULL,
                            .more_data = buffers->in[1]};
    tess_norm_passes *p = &norm.passes;
    tess_norm_divide(p, &op->in[0], TESS_NORM_PARTS);
    p->kernels = tess_cpu_of(device)->f32->norm;
    p->activation = op->activation;
    p->out = &op->out[0];
    p->in_data = buffers->in[0];
    p->out_data = buffers->out[0];
    p->sums = buffers->workspace;
    p->table = (float *)(p->sums + op->in[0].n * p->parts * 2 * op->in[0].c);
    p->step = 3 * op->in[0].c;
    tess_cpu_group_norm_table(pool, &norm);
    tess_norm_apply(pool, p);
}

tess_status tess_cpu_group_norm_refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind != TESS_OP_GROUP_NORM)
        return tess_kernel_refuse(why, NULL);
    if (!tess_cpu_is_value(&op->in[0]) || !tess_cpu_is_value(&op->out[0]) ||
        (op->inputs > 1 && !tess_cpu_is_value(&op->in[1])))
        return tess_kernel_refuse(why, "the CPU computes in fp32 or bf16; use `precision` fp32");
    return TESS_OK;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_of(device)->f32 ? tess_cpu_group_norm_refuses(device, op, why)
                                    : tess_kernel_refuse(why, NULL);
}

const tess_kernel tess_cpu_group_norm = {.name = "group norm",
                                         .refuses = refuses,
                                         .needs = norm_needs,
                                         .pack = tess_cpu_group_norm_pack,
                                         .run = norm_run};
