/* CHANNEL_DOT and its gradient: sums over the channels of a pixel in fp64, in their order. Used as the reference too. */
#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

typedef struct dot_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
} dot_job;

static int64_t place(const tess_tensor *t, int64_t line, int64_t x)
{
    return tess_cpu_line(t, line) + x * t->stride_w;
}

static void dot_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const dot_job *job = arg;
    const tess_tensor *in = job->op->in, *out = &job->op->out[0];
    float a[TESS_CPU_FEW], b[TESS_CPU_FEW];
    for (int64_t x = 0; x < out->w; x++) {
        double sum = 0;
        for (int64_t c = 0; c < in[0].c; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, in[0].c - c);
            tess_cpu_load(in[0].dtype, job->buffers->in[0], place(&in[0], line, x) + c, count, a);
            tess_cpu_load(in[1].dtype, job->buffers->in[1], place(&in[1], line, x) + c, count, b);
            for (int64_t i = 0; i < count; i++)
                sum += (double)a[i] * (double)b[i];
        }
        const float result = (float)(job->op->channel_dot.factor * sum);
        tess_cpu_store(out->dtype, job->buffers->out[0], place(out, line, x), 1, &result);
    }
}

static void grad_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const dot_job *job = arg;
    const tess_tensor *in = job->op->in, *out = &job->op->out[0];
    float gradient, values[TESS_CPU_FEW];
    for (int64_t x = 0; x < out->w; x++) {
        tess_cpu_load(in[0].dtype, job->buffers->in[0], place(&in[0], line, x), 1, &gradient);
        gradient *= (float)job->op->channel_dot.factor;
        for (int64_t c = 0; c < out->c; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, out->c - c);
            tess_cpu_load(in[1].dtype, job->buffers->in[1], place(&in[1], line, x) + c, count, values);
            for (int64_t i = 0; i < count; i++)
                values[i] *= gradient;
            tess_cpu_store(out->dtype, job->buffers->out[0], place(out, line, x) + c, count, values);
        }
    }
}

static void dot_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                    tess_stream *stream)
{
    (void)state, (void)stream;
    dot_job job = {op, buffers};
    tess_pool_run(tess_cpu_of(device)->pool, tess_cpu_lines(&op->out[0]),
                  op->kind == TESS_OP_CHANNEL_DOT ? dot_item : grad_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    const bool grad = op->kind == TESS_OP_CHANNEL_DOT_GRAD;
    if (op->kind != TESS_OP_CHANNEL_DOT && !grad)
        return tess_kernel_refuse(why, NULL);
    if (!tess_cpu_is_value(&op->in[0]) || !tess_cpu_is_value(&op->in[1]) || !tess_cpu_is_value(&op->out[0]))
        return tess_kernel_refuse(why, "the CPU computes in fp32 or bf16; use `precision` fp32");
    tess_tensor one = op->in[1];
    one.c = 1;
    if (!tess_cpu_same_sizes(&op->in[0], grad ? &one : &op->in[1]) ||
        !tess_cpu_same_sizes(&op->out[0], grad ? &op->in[1] : &one))
        return tess_kernel_refuse(why,
                                  "a sum over channels takes two tensors of one shape and gives one channel");
    return TESS_OK;
}

const tess_kernel tess_cpu_channel_dot = {.name = "channel dot", .refuses = refuses, .run = dot_run};
