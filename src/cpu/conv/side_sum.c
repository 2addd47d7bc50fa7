/* The sum that constant side slices of a 3-D kernel add to every output channel. It first sums the channels of
 * each pixel, then windows of these sums in the neighbouring slices. Sums are in fp64 registers, because
 * hundreds of values may cancel; the position of a value in the window alone fixes its place in the order. The two halves may be
 * ops of their own, so that ranks exchange sums and not channels: the second one is then the whole op for a single channel. */
#include "base/checked.h"
#include "cpu/core/cpu.h"

enum { LANES = 8 };

typedef struct side_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    float *sums; /* sums of channels, [n][d][h][w]; if they are the output, at its strides */
    tess_tensor layout;
} side_job;

static void side_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs = (tess_op_needs){.block = 1};
    if (!op->side.sums)
        needs->workspace = (size_t)(op->in[0].n * op->in[0].d * op->in[0].h * op->in[0].w) * sizeof(float);
}

static double sum_f32(const float *pixel, int64_t channels)
{
    double lane[LANES] = {0}, sum = 0;
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES)
        for (int i = 0; i < LANES; i++)
            lane[i] += pixel[c + i];
    for (int i = 0; i < LANES; i++)
        sum += lane[i];
    for (; c < channels; c++)
        sum += pixel[c];
    return sum;
}

static double sum_bf16(const uint16_t *pixel, int64_t channels)
{
    double lane[LANES] = {0}, sum = 0;
    int64_t c = 0;
    for (; c + LANES <= channels; c += LANES)
        for (int i = 0; i < LANES; i++)
            lane[i] += tess_bf16_to_float(pixel[c + i]);
    for (int i = 0; i < LANES; i++)
        sum += lane[i];
    for (; c < channels; c++)
        sum += tess_bf16_to_float(pixel[c]);
    return sum;
}

/* An item is one row of slice z of image n. */
static void channels_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const side_job *job = arg;
    const tess_tensor *in = &job->op->in[0];
    const int64_t y = item % in->h, z = item / in->h % in->d, n = item / in->h / in->d;
    const int64_t from = n * in->stride_n + z * in->stride_d + y * in->stride_h;
    const tess_tensor *to = &job->layout;
    float *sums = job->sums + n * to->stride_n + z * to->stride_d + y * to->stride_h;
    for (int64_t x = 0; x < in->w; x++) {
        const int64_t at = from + x * in->stride_w;
        sums[x * to->stride_w] =
            (float)(in->dtype == TESS_F32 ? sum_f32((const float *)job->buffers->in[0] + at, in->c)
                                          : sum_bf16((const uint16_t *)job->buffers->in[0] + at, in->c));
    }
}

/* z: the slice of the input in the middle. */
static double window_at(const side_job *job, int64_t n, int64_t z, int64_t y, int64_t x)
{
    const tess_op *op = job->op;
    const int64_t rd = op->kernel[TESS_DEPTH] / 2, ry = op->kernel[TESS_HEIGHT] / 2,
                  rx = op->kernel[TESS_WIDTH] / 2;
    const int64_t x0 = tess_max_i64(x - rx, 0), x1 = tess_min_i64(x + rx, op->in[0].w - 1);
    double sum = 0;
    for (int64_t slice = tess_max_i64(z - rd, 0); slice <= tess_min_i64(z + rd, op->in[0].d - 1); slice++) {
        if (slice == z)
            continue;
        for (int64_t row = tess_max_i64(y - ry, 0); row <= tess_min_i64(y + ry, op->in[0].h - 1); row++) {
            const float *sums = job->sums + ((n * op->in[0].d + slice) * op->in[0].h + row) * op->in[0].w;
            for (int64_t i = x0; i <= x1; i++)
                sum += sums[i];
        }
    }
    return sum;
}

static void window_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const side_job *job = arg;
    const tess_tensor *out = &job->op->out[0];
    const int64_t y = item % out->h, z = item / out->h % out->d, n = item / out->h / out->d;
    float *to = (float *)job->buffers->out[0] + n * out->stride_n + z * out->stride_d + y * out->stride_h;
    const int64_t middle = z + job->op->kernel[TESS_DEPTH] / 2 - job->op->pad_before[TESS_DEPTH];
    for (int64_t x = 0; x < out->w; x++)
        to[x * out->stride_w] = (float)(job->op->side.value * window_at(job, n, middle, y, x));
}

static void side_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    const tess_tensor *in = &op->in[0];
    side_job job = {op, buffers, buffers->workspace, tess_tensor_3d(TESS_F32, in->n, in->d, in->h, in->w, 1)};
    if (op->side.sums) {
        job.sums = buffers->out[0];
        job.layout = op->out[0];
    }
    tess_pool_run(cpu->pool, in->n * in->d * in->h, channels_item, &job);
    if (!op->side.sums)
        tess_pool_run(cpu->pool, op->out[0].n * op->out[0].d * op->out[0].h, window_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if (op->kind != TESS_OP_SIDE_SUM || !tess_cpu_of(device)->f32)
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_refuses_layer(device, op, why);
}

const tess_kernel tess_cpu_side_sum = {
    .name = "side sum", .refuses = refuses, .needs = side_needs, .run = side_run};
