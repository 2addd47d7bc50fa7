/* Ops that move, compare or change single values: max-pool, nearest upsampling, addition, activations. They
 * are memory-bound, so plain loops that the compiler vectorises are enough. */
#include <string.h>

#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

typedef struct pointwise_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
} pointwise_job;

static void pointwise_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    (void)op;
    *needs = (tess_op_needs){.block = 1};
}

static void pool_row_f32(const tess_op *op, const float *in, float *out)
{
    const int sx = op->stride[TESS_WIDTH], sy = op->stride[TESS_HEIGHT];
    for (int64_t x = 0; x < op->out[0].w; x++, out += op->out[0].stride_w)
        for (int ky = 0; ky < sy; ky++)
            for (int kx = 0; kx < sx; kx++) {
                const float *from = in + ky * op->in[0].stride_h + (x * sx + kx) * op->in[0].stride_w;
                for (int64_t c = 0; c < op->out[0].c; c++)
                    out[c] = ky + kx == 0 || from[c] > out[c] ? from[c] : out[c];
            }
}

static void pool_row_bf16(const tess_op *op, const uint16_t *in, uint16_t *out)
{
    const int sx = op->stride[TESS_WIDTH], sy = op->stride[TESS_HEIGHT];
    for (int64_t x = 0; x < op->out[0].w; x++, out += op->out[0].stride_w)
        for (int ky = 0; ky < sy; ky++)
            for (int kx = 0; kx < sx; kx++) {
                const uint16_t *from = in + ky * op->in[0].stride_h + (x * sx + kx) * op->in[0].stride_w;
                for (int64_t c = 0; c < op->out[0].c; c++) {
                    bool more = tess_bf16_to_float(from[c]) > tess_bf16_to_float(out[c]);
                    out[c] = ky + kx == 0 || more ? from[c] : out[c];
                }
            }
}

static void upsample_row(const tess_op *op, const char *in, char *out)
{
    const size_t size = tess_dtype_size(op->in[0].dtype), pixel = (size_t)op->out[0].c * size;
    for (int64_t x = 0; x < op->out[0].w; x++)
        memcpy(out + (size_t)(x * op->out[0].stride_w) * size,
               in + (size_t)(x / op->stride[TESS_WIDTH] * op->in[0].stride_w) * size, pixel);
}

static void add_row(const pointwise_job *job, int64_t n, int64_t y)
{
    const tess_op *op = job->op;
    const tess_tensor *out = &op->out[0];
    const tess_cpu_runs runs = tess_cpu_runs_of(op->in, out, op->inputs);
    float sum[TESS_CPU_FEW], more[TESS_CPU_FEW];
    for (int64_t x = 0; x < runs.runs; x++)
        for (int64_t c = 0; c < runs.length; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, runs.length - c);
            for (int k = 0; k < op->inputs; k++) {
                const tess_tensor *in = &op->in[k];
                tess_cpu_load(in->dtype, job->buffers->in[k],
                              n * in->stride_n + y * in->stride_h + x * in->stride_w + c, count,
                              k ? more : sum);
                for (int64_t i = 0; k && i < count; i++)
                    sum[i] += more[i];
            }
            tess_cpu_store(out->dtype, job->buffers->out[0],
                           n * out->stride_n + y * out->stride_h + x * out->stride_w + c, count, sum);
        }
}

static void activate_row(const pointwise_job *job, int64_t n, int64_t y)
{
    const tess_tensor *in = &job->op->in[0], *out = &job->op->out[0];
    float values[TESS_CPU_FEW];
    for (int64_t x = 0; x < out->w; x++)
        for (int64_t c = 0; c < out->c; c += TESS_CPU_FEW) {
            const int64_t from = n * in->stride_n + y * in->stride_h + x * in->stride_w + c,
                          to = n * out->stride_n + y * out->stride_h + x * out->stride_w + c,
                          count = tess_min_i64(TESS_CPU_FEW, out->c - c);
            tess_cpu_load(in->dtype, job->buffers->in[0], from, count, values);
            tess_cpu_activate(job->op->activation, values, count);
            tess_cpu_store(out->dtype, job->buffers->out[0], to, count, values);
        }
}

static void pointwise_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const pointwise_job *job = arg;
    const tess_op *op = job->op;
    const int64_t n = item / op->out[0].h, y = item % op->out[0].h;
    const int64_t to = n * op->out[0].stride_n + y * op->out[0].stride_h;
    const char *in = job->buffers->in[0];
    char *out = job->buffers->out[0];
    const int64_t size = (int64_t)tess_dtype_size(op->in[0].dtype);
    if (op->kind == TESS_OP_ADD) {
        add_row(job, n, y);
    } else if (op->kind == TESS_OP_ACTIVATE) {
        activate_row(job, n, y);
    } else if (op->kind == TESS_OP_UPSAMPLE) {
        int64_t from = n * op->in[0].stride_n + y / op->stride[TESS_HEIGHT] * op->in[0].stride_h;
        upsample_row(op, in + from * size, out + to * size);
    } else {
        int64_t from = n * op->in[0].stride_n + y * op->stride[TESS_HEIGHT] * op->in[0].stride_h;
        if (op->in[0].dtype == TESS_F32)
            pool_row_f32(op, (const float *)in + from, (float *)out + to);
        else
            pool_row_bf16(op, (const uint16_t *)job->buffers->in[0] + from,
                          (uint16_t *)job->buffers->out[0] + to);
    }
}

static void pointwise_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    pointwise_job job = {op, buffers};
    tess_pool_run(cpu->pool, op->out[0].n * op->out[0].h, pointwise_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if ((op->kind != TESS_OP_MAX_POOL && op->kind != TESS_OP_UPSAMPLE && op->kind != TESS_OP_ADD &&
         op->kind != TESS_OP_ACTIVATE) ||
        !tess_cpu_of(device)->f32)
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_refuses_layer(device, op, why);
}

const tess_kernel tess_cpu_pointwise = {
    .name = "pointwise", .refuses = refuses, .needs = pointwise_needs, .run = pointwise_run};
