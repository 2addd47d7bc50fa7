/* Direct fp32 convolution: any kernel, stride and padding; a work item is one output row. A transposed
 * convolution with kernel = stride is, for each of its taps, a 1x1 convolution onto every stride-th pixel. */
#include <string.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"

typedef struct direct_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    const tess_f32_kernels *kernels;
    tess_f32_layout layout;
} direct_job;

static void direct_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    tess_f32_layout layout = tess_f32_layout_of(cpu, op);
    needs->weights = (size_t)layout.floats * sizeof(float);
    needs->workspace = (size_t)op->in[0].c * sizeof(float); /* a pixel of zeros */
    needs->block = 1;
}

static void direct_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                        const float *values, void *packed)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    tess_f32_layout layout = tess_f32_layout_of(cpu, op);
    tess_f32_layout_pack(&layout, op, param, first, count, values, packed);
}

static tess_direct_row row_of(const direct_job *job, int64_t n, int64_t out_y)
{
    const tess_op *op = job->op;
    tess_direct_row row = {.in_w = op->in[0].w,
                           .in_pixel = op->in[0].stride_w,
                           .cin = op->in[0].c,
                           .weights = job->buffers->weights,
                           .zeros = job->buffers->workspace,
                           .out = (float *)job->buffers->out[0] + n * op->out[0].stride_n +
                                  out_y * op->out[0].stride_h,
                           .out_pixel = op->out[0].stride_w,
                           .cout = op->out[0].c,
                           .residuals = tess_op_residuals(op),
                           .relu = tess_op_relu(op)};
    if (op->bias)
        row.bias = row.weights + job->layout.bias_at;
    if (op->mapped) {
        row.map = (const float *)job->buffers->in[op->inputs - 1] + n * tess_op_map(op)->stride_n +
                  out_y * tess_op_map(op)->stride_h;
        row.map_pixel = tess_op_map(op)->stride_w;
    }
    if (op->masked) {
        row.mask = (const float *)job->buffers->in[op->inputs - 1] + n * tess_op_mask(op)->stride_n +
                   out_y * tess_op_mask(op)->stride_h;
        row.mask_pixel = tess_op_mask(op)->stride_w;
    }
    for (int r = 0; r < tess_op_residuals(op); r++) {
        const tess_tensor *t = &op->in[1 + r];
        row.residual[r] = (const float *)job->buffers->in[1 + r] + n * t->stride_n + out_y * t->stride_h;
        row.residual_pixel[r] = t->stride_w;
    }
    return row;
}

static void conv_row(void *arg, int64_t item, int thread)
{
    (void)thread;
    const direct_job *job = arg;
    const tess_op *op = job->op;
    int64_t n = item / op->out[0].h, y = item % op->out[0].h;
    tess_direct_row row = row_of(job, n, y);
    row.taps_y = op->kernel[TESS_HEIGHT];
    row.taps_x = op->kernel[TESS_WIDTH];
    row.stride_x = op->stride[TESS_WIDTH];
    row.pad_x = op->pad_before[TESS_WIDTH];
    row.out_w = op->out[0].w;
    for (int ky = 0; ky < row.taps_y; ky++) {
        int64_t in_y = y * op->stride[TESS_HEIGHT] + ky - op->pad_before[TESS_HEIGHT];
        if (in_y >= 0 && in_y < op->in[0].h)
            row.rows[ky] =
                (const float *)job->buffers->in[0] + n * op->in[0].stride_n + in_y * op->in[0].stride_h;
    }
    job->kernels->direct_row(&row);
}

static void transpose_row(void *arg, int64_t item, int thread)
{
    (void)thread;
    const direct_job *job = arg;
    const tess_op *op = job->op;
    const int sy = op->stride[TESS_HEIGHT], sx = op->stride[TESS_WIDTH];
    int64_t n = item / op->out[0].h, y = item % op->out[0].h;
    for (int dx = 0; dx < sx; dx++) {
        tess_direct_row row = row_of(job, n, y);
        row.rows[0] =
            (const float *)job->buffers->in[0] + n * op->in[0].stride_n + y / sy * op->in[0].stride_h;
        row.taps_y = row.taps_x = row.stride_x = 1;
        row.out_w = op->in[0].w;
        row.weights += (y % sy * sx + dx) * job->layout.blocks * job->layout.cin * job->layout.block;
        row.out += dx * op->out[0].stride_w;
        row.out_pixel *= sx;
        for (int r = 0; r < tess_op_residuals(op); r++) {
            row.residual[r] += dx * op->in[1 + r].stride_w;
            row.residual_pixel[r] *= sx;
        }
        if (op->masked) {
            row.mask += dx * tess_op_mask(op)->stride_w;
            row.mask_pixel *= sx;
        }
        job->kernels->direct_row(&row);
    }
}

static void direct_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                       tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    direct_job job = {op, buffers, cpu->f32, tess_f32_layout_of(cpu, op)};
    memset(buffers->workspace, 0, (size_t)op->in[0].c * sizeof(float));
    tess_pool_run(cpu->pool, op->out[0].n * op->out[0].h, job.layout.transposed ? transpose_row : conv_row,
                  &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if (!tess_cpu_is_conv(op) || !tess_cpu_of(device)->f32 || tess_op_precision(op) == TESS_BF16)
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_refuses_layer(device, op, why);
}

const tess_kernel tess_cpu_direct = {
    .name = "direct", .refuses = refuses, .needs = direct_needs, .pack = direct_pack, .run = direct_run};
