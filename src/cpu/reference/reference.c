#include "cpu/reference/reference.h"

#include <string.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"
#include "cpu/reference/values.h"

enum { PIXELS = 16 }; /* an item of the pool takes a fraction of a second even with very many channels */

/* One output value of a convolution before bias and residuals. */
static double conv_at(const tess_op *op, const void *in, const float *kernel, const int64_t at[4], int64_t o)
{
    const int32_t *k = op->kernel;
    double sum = 0;
    for (int64_t i = 0; i < op->in[0].c; i++)
        for (int kd = 0; kd < k[0]; kd++)
            for (int ky = 0; ky < k[1]; ky++)
                for (int kx = 0; kx < k[2]; kx++) {
                    int64_t d = at[1] * op->stride[0] + kd - op->pad_before[0];
                    int64_t y = at[2] * op->stride[1] + ky - op->pad_before[1];
                    int64_t x = at[3] * op->stride[2] + kx - op->pad_before[2];
                    if (d < 0 || d >= op->in[0].d || y < 0 || y >= op->in[0].h || x < 0 || x >= op->in[0].w)
                        continue;
                    double w = kernel[(((o * op->in[0].c + i) * k[0] + kd) * k[1] + ky) * k[2] + kx];
                    sum += w * tess_reference_load(&op->in[0], in,
                                                   tess_reference_place(&op->in[0], at[0], d, y, x) + i);
                }
    return sum;
}

/* The upsampled image is never stored: its pixel (y, x) is the input's (y / 2, x / 2). */
static double up_conv_at(const tess_op *op, const void *in, const float *kernel, const int64_t at[4],
                         int64_t o)
{
    double sum = 0;
    for (int64_t i = 0; i < op->in[0].c; i++)
        for (int tap = 0; tap < 9; tap++) {
            int64_t y = at[2] + tap / 3 - 1, x = at[3] + tap % 3 - 1;
            if (y < 0 || y >= op->out[0].h || x < 0 || x >= op->out[0].w)
                continue;
            sum += kernel[(o * op->in[0].c + i) * 9 + tap] *
                   tess_reference_load(&op->in[0], in,
                                       tess_reference_place(&op->in[0], at[0], at[1], y / 2, x / 2) + i);
        }
    return sum;
}

/* Kernel = stride: each output pixel depends on one input pixel and one tap. */
static double transpose_at(const tess_op *op, const void *in, const float *kernel, const int64_t at[4],
                           int64_t o)
{
    const int32_t *k = op->kernel, *s = op->stride;
    int64_t from = tess_reference_place(&op->in[0], at[0], at[1] / s[0], at[2] / s[1], at[3] / s[2]);
    int64_t tap = ((at[1] % s[0]) * k[1] + at[2] % s[1]) * k[2] + at[3] % s[2],
            taps = (int64_t)k[0] * k[1] * k[2];
    double sum = 0;
    for (int64_t i = 0; i < op->in[0].c; i++)
        sum += (double)kernel[(i * op->out[0].c + o) * taps + tap] *
               tess_reference_load(&op->in[0], in, from + i);
    return sum;
}

/* The contribution of side slices that hold a single value. */
static double side_at(const tess_op *op, const void *in, const int64_t at[4])
{
    const int64_t rd = op->kernel[0] / 2, ry = op->kernel[1] / 2, rx = op->kernel[2] / 2,
                  middle = at[1] + rd - op->pad_before[0];
    double sum = 0;
    for (int64_t c = 0; op->side.sums && c < op->in[0].c; c++)
        sum += tess_reference_load(&op->in[0], in,
                                   tess_reference_place(&op->in[0], at[0], at[1], at[2], at[3]) + c);
    if (op->side.sums)
        return sum;
    for (int64_t d = middle - rd; d <= middle + rd; d++)
        for (int64_t y = at[2] - ry; y <= at[2] + ry; y++)
            for (int64_t x = at[3] - rx; x <= at[3] + rx; x++) {
                if (d == middle || d < 0 || d >= op->in[0].d || y < 0 || y >= op->in[0].h || x < 0 ||
                    x >= op->in[0].w)
                    continue;
                for (int64_t c = 0; c < op->in[0].c; c++)
                    sum += tess_reference_load(&op->in[0], in,
                                               tess_reference_place(&op->in[0], at[0], d, y, x) + c);
            }
    return op->side.value * sum;
}

static double pool_at(const tess_op *op, const void *in, const int64_t at[4], int64_t c)
{
    double most = -1.0 / 0.0;
    for (int kd = 0; kd < op->kernel[0]; kd++)
        for (int ky = 0; ky < op->kernel[1]; ky++)
            for (int kx = 0; kx < op->kernel[2]; kx++) {
                int64_t from = tess_reference_place(&op->in[0], at[0], at[1] * op->stride[0] + kd,
                                                    at[2] * op->stride[1] + ky, at[3] * op->stride[2] + kx);
                double value = tess_reference_load(&op->in[0], in, from + c);
                most = value > most ? value : most;
            }
    return most;
}

static double value_at(const tess_op *op, const void *in, const float *kernel, const int64_t at[4], int64_t c)
{
    switch (op->kind) {
    case TESS_OP_CONV:
        return conv_at(op, in, kernel, at, c);
    case TESS_OP_CONV_TRANSPOSE:
        return transpose_at(op, in, kernel, at, c);
    case TESS_OP_UP_CONV:
        return up_conv_at(op, in, kernel, at, c);
    case TESS_OP_SIDE_SUM:
        return side_at(op, in, at);
    case TESS_OP_MAX_POOL:
        return pool_at(op, in, at, c);
    case TESS_OP_UPSAMPLE:
        return tess_reference_load(&op->in[0], in,
                                   tess_reference_place(&op->in[0], at[0], at[1] / op->stride[0],
                                                        at[2] / op->stride[1], at[3] / op->stride[2]) +
                                       c);
    default:
        return tess_reference_load(&op->in[0], in,
                                   tess_reference_place(&op->in[0], at[0], at[1], at[2], at[3]) + c);
    }
}

/* The arguments of a call, for the loop over pixels. */
typedef struct reference_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    const float *kernel, *bias;
} reference_job;

static void pixel(const reference_job *job, int64_t n, int64_t d, int64_t y, int64_t x)
{
    const tess_op *op = job->op;
    const tess_op_buffers *buffers = job->buffers;
    const int64_t at[4] = {n, d, y, x};
    for (int64_t c = 0; c < op->out[0].c; c++) {
        double value = value_at(op, buffers->in[0], job->kernel, at, c) + (job->bias ? job->bias[c] : 0.0);
        if (op->mapped)
            value += tess_reference_load(tess_op_map(op), buffers->in[op->inputs - 1],
                                         tess_reference_place(tess_op_map(op), n, d, y, x));
        for (int r = 0; r < tess_op_residuals(op); r++)
            value += tess_reference_load(&op->in[1 + r], buffers->in[1 + r],
                                         tess_reference_place(&op->in[1 + r], n, d, y, x) + c);
        if (op->masked && !(tess_reference_load(tess_op_mask(op), buffers->in[op->inputs - 1],
                                                tess_reference_place(tess_op_mask(op), n, d, y, x) + c) > 0))
            value = 0;
        tess_reference_store(&op->out[0], buffers->out[0], tess_reference_place(&op->out[0], n, d, y, x) + c,
                             tess_reference_activated(op->activation, value));
    }
}

static void pixels_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const reference_job *job = arg;
    const tess_tensor *out = &job->op->out[0];
    const int64_t all = out->n * out->d * out->h * out->w;
    for (int64_t i = item * PIXELS; i < (item + 1) * PIXELS && i < all; i++)
        pixel(job, i / out->w / out->h / out->d, i / out->w / out->h % out->d, i / out->w % out->h,
              i % out->w);
}

static int64_t items_of(const tess_op *op)
{
    return tess_ceil_div(op->out[0].n * op->out[0].d * op->out[0].h * op->out[0].w, PIXELS);
}

void tess_reference_run(const tess_op *op, const tess_op_buffers *buffers, const float *kernel,
                        const float *bias)
{
    reference_job job = {op, buffers, kernel, bias};
    for (int64_t item = 0; item < items_of(op); item++)
        pixels_item(&job, item, 0);
}

/* The reference as a kernel row (TESSERA_ISA=reference): weights stay in the file's order. */
static size_t kernel_floats(const tess_op *op)
{
    bool conv = op->kind == TESS_OP_CONV || op->kind == TESS_OP_CONV_TRANSPOSE;
    return conv ? (size_t)(op->in[0].c * op->out[0].c * tess_op_taps(op)) : 0;
}

static void reference_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs = (tess_op_needs){.block = 1};
    needs->weights = (kernel_floats(op) + (op->bias ? (size_t)op->out[0].c : 0)) * sizeof(float);
}

static void reference_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                           const float *values, void *packed)
{
    (void)device;
    size_t rows = (size_t)(op->kind == TESS_OP_CONV_TRANSPOSE ? op->in[0].c : op->out[0].c);
    size_t row = param == TESS_PARAM_BIAS ? 1 : kernel_floats(op) / rows;
    float *to = (float *)packed + (param == TESS_PARAM_BIAS ? kernel_floats(op) : 0) + (size_t)first * row;
    memcpy(to, values, (size_t)count * row * sizeof(float));
}

static void reference_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    const float *kernel = buffers->weights;
    reference_job job = {op, buffers, kernel, op->bias ? kernel + kernel_floats(op) : NULL};
    tess_pool_run(cpu->pool, items_of(op), pixels_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if (!tess_op_is_layer(op) && op->kind != TESS_OP_SIDE_SUM)
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_refuses_layer(device, op, why);
}

const tess_kernel tess_cpu_reference = {.name = "reference",
                                        .refuses = refuses,
                                        .needs = reference_needs,
                                        .pack = reference_pack,
                                        .run = reference_run};
