/* The small ops of a convolution's backward pass: what their kernels take, and FLIP, which only moves values, so that
 * one kernel serves every instruction set. */
#include "base/checked.h"
#include "cpu/conv/grad.h"

static int64_t elements(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

static bool is_value(const tess_tensor *t)
{
    return t->dtype == TESS_F32 || t->dtype == TESS_BF16;
}

/* The sizes of the gradient of the output must follow from those of the input. */
static bool window_fits(const tess_op *op)
{
    const int64_t in[TESS_SPATIAL] = {op->in[0].d, op->in[0].h, op->in[0].w};
    const int64_t out[TESS_SPATIAL] = {op->in[1].d, op->in[1].h, op->in[1].w};
    for (int s = 0; s < TESS_SPATIAL; s++) {
        const int64_t room = in[s] + op->pad_before[s] + op->pad_after[s] - op->kernel[s];
        if (op->kernel[s] < 1 || op->stride[s] < 1 || room < 0 || room / op->stride[s] + 1 != out[s])
            return false;
    }
    return op->in[0].n == op->in[1].n;
}

tess_status tess_cpu_conv_grad_refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind != TESS_OP_CONV_GRAD)
        return tess_kernel_refuse(why, NULL);
    if (!is_value(&op->in[0]) || !is_value(&op->in[1]) || op->out[0].dtype != TESS_F32)
        return tess_kernel_refuse(why, "the CPU computes gradients of fp32 or bf16 values, in fp32");
    if (tess_op_is_pair(op))
        return tess_kernel_refuse(why, "the CPU takes one convolution at a time");
    if (!window_fits(op) || elements(&op->out[0]) != op->in[0].c * op->in[1].c * tess_op_taps(op) ||
        (op->outputs > 1 && (elements(&op->out[1]) != op->in[1].c || op->out[1].dtype != TESS_F32)))
        return tess_kernel_refuse(why, "the gradients of a convolution need tensors of its sizes");
    return TESS_OK;
}

tess_status tess_cpu_channel_sum_refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind != TESS_OP_CHANNEL_SUM)
        return tess_kernel_refuse(why, NULL);
    if (!is_value(&op->in[0]) || op->out[0].dtype != TESS_F32 || elements(&op->out[0]) != op->in[0].c)
        return tess_kernel_refuse(why, "channels of fp32 or bf16 values are summed to as many fp32 values");
    return TESS_OK;
}

typedef struct flip_job {
    const tess_op_flip *flip;
    const float *in;
    float *out;
} flip_job;

/* One row of the result. */
static void flip_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const flip_job *job = arg;
    const int64_t outer = job->flip->outer, inner = job->flip->inner, taps = job->flip->taps;
    float *to = job->out + item * outer * taps;
    for (int64_t o = 0; o < outer; o++, to += taps) {
        const float *from = job->in + (o * inner + item) * taps;
        for (int64_t t = 0; t < taps; t++)
            to[t] = from[taps - 1 - t];
    }
}

static void flip_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    flip_job job = {&op->flip, buffers->in[0], buffers->out[0]};
    tess_pool_run(tess_cpu_of(device)->pool, op->flip.inner, flip_item, &job);
}

static tess_status flip_refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind != TESS_OP_FLIP)
        return tess_kernel_refuse(why, NULL);
    const int64_t count = op->flip.outer * op->flip.inner * op->flip.taps;
    if (op->in[0].dtype != TESS_F32 || op->out[0].dtype != TESS_F32 || elements(&op->in[0]) != count ||
        elements(&op->out[0]) != count)
        return tess_kernel_refuse(why, "kernels are flipped in fp32, and keep their size");
    return TESS_OK;
}

const tess_kernel tess_cpu_flip = {.name = "flip", .refuses = flip_refuses, .run = flip_run};
