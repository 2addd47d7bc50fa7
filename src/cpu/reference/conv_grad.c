/* The gradients of a convolution's parameters as plain loops in fp64: each value is one sum over all pixels, in the
 * order of the pixels. */
#include "base/checked.h"
#include "cpu/conv/grad.h"
#include "cpu/reference/reference.h"
#include "cpu/reference/values.h"

/* The sum over all pixels of one output slice of gradient * input, for one value of the kernel. */
static double slice_sum(const tess_op *op, const tess_op_buffers *buffers, const int64_t place[5], int64_t n,
                        int64_t d)
{
    const tess_tensor *in = &op->in[0], *grad = &op->in[1];
    const int64_t from_d = d * op->stride[0] + place[2] - op->pad_before[0];
    double sum = 0;
    if (from_d < 0 || from_d >= in->d)
        return 0;
    for (int64_t y = 0; y < grad->h; y++)
        for (int64_t x = 0; x < grad->w; x++) {
            const int64_t from_y = y * op->stride[1] + place[3] - op->pad_before[1];
            const int64_t from_x = x * op->stride[2] + place[4] - op->pad_before[2];
            if (from_y < 0 || from_y >= in->h || from_x < 0 || from_x >= in->w)
                continue;
            sum +=
                tess_reference_load(grad, buffers->in[1], tess_reference_place(grad, n, d, y, x) + place[0]) *
                tess_reference_load(in, buffers->in[0],
                                    tess_reference_place(in, n, from_d, from_y, from_x) + place[1]);
        }
    return sum;
}

static double channel_sum(const tess_tensor *t, const void *data, int64_t c)
{
    double sum = 0;
    for (int64_t n = 0; n < t->n; n++)
        for (int64_t d = 0; d < t->d; d++)
            for (int64_t y = 0; y < t->h; y++)
                for (int64_t x = 0; x < t->w; x++)
                    sum += tess_reference_load(t, data, tess_reference_place(t, n, d, y, x) + c);
    return sum;
}

static void put(const tess_op *op, float *to, double sum)
{
    *to = (float)(op->grad.accumulate ? (double)*to + sum : sum);
}

typedef struct reference_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
} reference_job;

/* One value of the kernel's gradient. */
static void kernel_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const reference_job *job = arg;
    const tess_op *op = job->op;
    const int32_t *k = op->kernel;
    const int64_t tap = item % tess_op_taps(op), pair = item / tess_op_taps(op);
    /* output channel, input channel, kd, ky, kx */
    const int64_t place[5] = {pair / op->in[0].c, pair % op->in[0].c, tap / k[2] / k[1], tap / k[2] % k[1],
                              tap % k[2]};
    double sum = 0;
    for (int64_t n = 0; n < op->in[1].n; n++)
        for (int64_t d = 0; d < op->in[1].d; d++)
            sum += slice_sum(op, job->buffers, place, n, d);
    put(op, (float *)job->buffers->out[0] + item, sum);
}

/* One channel of the last input: CHANNEL_SUM's only one, or the gradient of a convolution's output. */
static void channel_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const reference_job *job = arg;
    const int last = job->op->inputs - 1;
    put(job->op, (float *)job->buffers->out[last] + item,
        channel_sum(&job->op->in[last], job->buffers->in[last], item));
}

void tess_reference_conv_grad(const tess_op *op, const tess_op_buffers *buffers)
{
    reference_job job = {op, buffers};
    for (int64_t i = 0; i < op->in[0].c * op->in[1].c * tess_op_taps(op); i++)
        kernel_item(&job, i, 0);
    for (int64_t c = 0; c < op->in[1].c && op->outputs > 1; c++)
        channel_item(&job, c, 0);
}

static void conv_grad_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    reference_job job = {op, buffers};
    tess_pool_run(cpu->pool, op->in[0].c * op->in[1].c * tess_op_taps(op), kernel_item, &job);
    if (op->outputs > 1)
        tess_pool_run(cpu->pool, op->in[1].c, channel_item, &job);
}

static void channel_sum_run(tess_device *device, const tess_op *op, void *state,
                            const tess_op_buffers *buffers, tess_stream *stream)
{
    (void)state, (void)stream;
    reference_job job = {op, buffers};
    tess_pool_run(tess_cpu_of(device)->pool, op->in[0].c, channel_item, &job);
}

const tess_kernel tess_cpu_conv_grad_reference = {
    .name = "conv grad reference", .refuses = tess_cpu_conv_grad_refuses, .run = conv_grad_run};
const tess_kernel tess_cpu_channel_sum_reference = {
    .name = "channel sum reference", .refuses = tess_cpu_channel_sum_refuses, .run = channel_sum_run};
