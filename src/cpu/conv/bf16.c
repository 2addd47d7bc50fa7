/* bf16 convolution by matrix instructions: storage in bf16, sums in fp32, one rounding at the end. A work item
 * is a few output rows of one segment. Their input rows are staged once in the order that the instruction
 * needs, with zeros outside the image; then every panel of weights is multiplied with them. */
#include "base/checked.h"
#include "cpu/core/cpu.h"

enum { ROWS = 4, STAGE_TARGET = 16384, MAX_BLOCK = 32, MAX_PIXELS = 32, MAX_TAPS = 64 };

typedef struct bf16_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    const tess_bf16_kernels *kernels;
    int kernel_y, kernel_x, stride_y, stride_x, pad_y,
        pad_x;                   /* of the plain convolution; a transposed one is 1x1 for each tap */
    int up_y, up_x;              /* 1, or the stride of a transposed convolution */
    int64_t rows_out, width_out; /* of the plain convolution */
    int64_t segment, segments, row_groups, panel, panels;
    int extra, variants; /* stages per input row: one, or one for each kx if the stride is not 1 */
    int64_t longest;     /* longest segment that any narrower image could have */
    /* narrowed: a row of an fp32 image rounded to bf16. */
    int64_t stage_elements, narrowed_elements, thread_elements;
} bf16_job;

/* Number of input pixels that one segment reads. */
static int64_t narrowed_pixels(const bf16_job *job)
{
    return job->longest * job->stride_x + job->kernel_x;
}

static bf16_job job_of(const tess_cpu *cpu, const tess_op *op)
{
    const tess_bf16_kernels *kernels = cpu->bf16;
    const bool up = op->kind == TESS_OP_CONV_TRANSPOSE;
    bf16_job job = {.op = op, .kernels = kernels};
    job.kernel_y = up ? 1 : op->kernel[TESS_HEIGHT];
    job.kernel_x = up ? 1 : op->kernel[TESS_WIDTH];
    job.stride_y = up ? 1 : op->stride[TESS_HEIGHT];
    job.stride_x = up ? 1 : op->stride[TESS_WIDTH];
    job.pad_y = up ? 0 : op->pad_before[TESS_HEIGHT];
    job.pad_x = up ? 0 : op->pad_before[TESS_WIDTH];
    job.up_y = up ? op->stride[TESS_HEIGHT] : 1;
    job.up_x = up ? op->stride[TESS_WIDTH] : 1;
    job.rows_out = op->out[0].h / job.up_y;
    job.width_out = op->out[0].w / job.up_x;
    int64_t depth = tess_round_up(op->in[0].c, kernels->depth);
    int64_t target = tess_max_i64(STAGE_TARGET / depth, kernels->pixels);
    int64_t parts = tess_ceil_div(job.width_out, target); /* equal parts waste the least at the end */
    job.segment = tess_round_up(tess_ceil_div(job.width_out, parts), kernels->pixels);
    job.segments = tess_ceil_div(job.width_out, job.segment);
    job.row_groups = tess_ceil_div(job.rows_out, ROWS);
    job.extra = job.stride_x == 1 ? job.kernel_x - 1 : 0;
    job.variants = job.stride_x == 1 ? 1 : job.kernel_x;
    job.panel = (int64_t)job.kernel_y * job.kernel_x * depth * kernels->block;
    job.panels = tess_ceil_div(op->out[0].c, kernels->block);
    /* Room for the longest segment that any narrower image could have, so that needs never shrink as the width
     * grows. */
    job.longest = tess_round_up(tess_min_i64(job.width_out, target), kernels->pixels);
    job.stage_elements = tess_round_up(kernels->stage_elements(op->in[0].c, job.longest, job.extra), 32);
    job.thread_elements = job.stage_elements * job.variants * ((ROWS - 1) * job.stride_y + job.kernel_y);
    if (op->in[0].dtype == TESS_F32)
        job.narrowed_elements = tess_round_up(narrowed_pixels(&job) * op->in[0].c, 32);
    job.thread_elements += job.narrowed_elements;
    return job;
}

static int64_t kernel_elements(const bf16_job *job)
{
    return tess_round_up(job->panel * job->panels * job->up_y * job->up_x, 32);
}

static void bf16_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    bf16_job job = job_of(cpu, op);
    int64_t bias = op->bias ? job.panels * job.kernels->block : 0;
    needs->weights = (size_t)kernel_elements(&job) * 2 + (size_t)bias * sizeof(float);
    needs->workspace = (size_t)(job.thread_elements * tess_pool_threads(cpu->pool)) * 2;
    needs->block = 1;
}

static void bf16_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                      const float *values, void *packed)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    bf16_job job = job_of(cpu, op);
    uint16_t *to = packed;
    if (param == TESS_PARAM_BIAS) {
        float *bias = (float *)(to + kernel_elements(&job));
        for (int64_t o = 0; o < count; o++)
            bias[first + o] = values[o];
        return;
    }
    const bool up = op->kind == TESS_OP_CONV_TRANSPOSE;
    const int64_t second = up ? op->out[0].c : op->in[0].c, taps = tess_op_taps(op),
                  block = job.kernels->block;
    for (int64_t a = first; a < first + count; a++)
        for (int64_t b = 0; b < second; b++)
            for (int64_t tap = 0; tap < taps; tap++) {
                int64_t o = up ? b : a, i = up ? a : b;
                int64_t panel = (up ? tap * job.panels : 0) + o / block;
                int64_t place = job.kernels->panel_place(op->in[0].c, up ? 0 : tap, i, (int)(o % block));
                to[panel * job.panel + place] = tess_float_to_bf16(*values++);
            }
}

/* Part of an input row in bf16: the image itself, or the pixels that a segment reads of an fp32 image,
 * rounded. */
typedef struct row_view {
    const uint16_t *data;
    int64_t first, width, pixel; /* in pixels: first in the row, number; elements from pixel to pixel */
} row_view;

static row_view row_of(const bf16_job *job, int64_t n, int64_t y, int64_t x0, uint16_t *narrowed)
{
    const tess_tensor *in = &job->op->in[0];
    const int64_t at = n * in->stride_n + y * in->stride_h;
    if (in->dtype == TESS_BF16)
        return (row_view){(const uint16_t *)job->buffers->in[0] + at, 0, in->w, in->stride_w};
    int64_t from = tess_max_i64(x0 * job->stride_x - job->pad_x, 0), to = from + narrowed_pixels(job);
    from = tess_min_i64(from, in->w);
    to = tess_min_i64(to, in->w);
    const float *values = (const float *)job->buffers->in[0] + at;
    for (int64_t x = from; x < to; x++)
        for (int64_t c = 0; c < in->c; c++)
            narrowed[(x - from) * in->c + c] = tess_float_to_bf16(values[x * in->stride_w + c]);
    return (row_view){narrowed, from, to - from, in->c};
}

static void stage_rows(const bf16_job *job, int64_t n, int64_t y0, int64_t x0, int rows, uint16_t *stages)
{
    uint16_t *narrowed = stages + job->thread_elements - job->narrowed_elements;
    const tess_tensor *in = &job->op->in[0];
    int lines = (rows - 1) * job->stride_y + job->kernel_y;
    for (int line = 0; line < lines; line++) {
        int64_t y = y0 * job->stride_y - job->pad_y + line;
        row_view row = y >= 0 && y < in->h ? row_of(job, n, y, x0, narrowed) : (row_view){0};
        for (int v = 0; v < job->variants; v++)
            job->kernels->stage(row.data, row.data ? row.width : in->w, row.pixel, in->c,
                                x0 * job->stride_x - job->pad_x + v - row.first, job->stride_x, job->segment,
                                job->extra, stages + (line * job->variants + v) * job->stage_elements);
    }
}

/* Finishes the sums of one register block and writes them to the image. */
static void finish(const bf16_job *job, const float *sums, const int64_t at[3], int64_t block_at,
                   int64_t channel, int up_y, int up_x)
{
    const tess_op *op = job->op;
    const int block = job->kernels->block;
    const int64_t y = at[1] * job->up_y + up_y;
    tess_bf16_pixel pixel = {.channels = tess_min_i64(block, op->out[0].c - channel),
                             .relu = tess_op_relu(op),
                             .f32 = op->out[0].dtype == TESS_F32};
    const int64_t size = (int64_t)tess_dtype_size(op->out[0].dtype);
    if (op->bias)
        pixel.bias =
            (const float *)((const uint16_t *)job->buffers->weights + kernel_elements(job)) + channel;
    char *out = (char *)job->buffers->out[0] +
                (at[0] * op->out[0].stride_n + y * op->out[0].stride_h + channel) * size;
    for (int i = 0; i < job->kernels->pixels; i++) {
        int64_t x = at[2] + job->kernels->pixel_of(job->segment, block_at, i);
        if (x >= job->width_out)
            continue;
        x = x * job->up_x + up_x;
        pixel.out = out + x * op->out[0].stride_w * size;
        if (op->mapped)
            pixel.map = (const float *)job->buffers->in[op->inputs - 1] + at[0] * tess_op_map(op)->stride_n +
                        y * tess_op_map(op)->stride_h + x * tess_op_map(op)->stride_w;
        for (int r = 0; r < tess_op_residuals(op); r++) {
            const tess_tensor *t = &op->in[1 + r];
            int64_t from = at[0] * t->stride_n + y * t->stride_h + x * t->stride_w + channel;
            pixel.residual[r] = (const char *)job->buffers->in[1 + r] + from * size;
        }
        if (op->masked) {
            const tess_tensor *t = tess_op_mask(op);
            int64_t from = at[0] * t->stride_n + y * t->stride_h + x * t->stride_w + channel;
            pixel.mask = (const char *)job->buffers->in[op->inputs - 1] + from * size;
        }
        job->kernels->finish(&pixel, sums + i * block);
    }
}

static void bf16_item(void *arg, int64_t item, int thread)
{
    const bf16_job *job = arg;
    const tess_bf16_kernels *kernels = job->kernels;
    const int64_t segment = item % job->segments, group = item / job->segments % job->row_groups;
    const int64_t n = item / job->segments / job->row_groups, y0 = group * ROWS, x0 = segment * job->segment;
    const int rows = (int)tess_min_i64(ROWS, job->rows_out - y0), taps = job->kernel_y * job->kernel_x;
    uint16_t *stages = (uint16_t *)job->buffers->workspace + thread * job->thread_elements;
    stage_rows(job, n, y0, x0, rows, stages);
    const int64_t blocks = job->segment / kernels->pixels;
    float sums[MAX_PIXELS * MAX_BLOCK];
    for (int64_t panel = 0; panel < job->panels * job->up_y * job->up_x; panel++) {
        const uint16_t *weights = (const uint16_t *)job->buffers->weights + panel * job->panel;
        const int up = (int)(panel / job->panels);
        for (int row = 0; row < rows; row++) {
            const uint16_t *tap[MAX_TAPS];
            int shift[MAX_TAPS];
            for (int t = 0; t < taps; t++) {
                int line = row * job->stride_y + t / job->kernel_x, kx = t % job->kernel_x;
                tap[t] = stages + (line * job->variants + (job->variants > 1 ? kx : 0)) * job->stage_elements;
                shift[t] = job->variants > 1 ? 0 : kx;
            }
            for (int64_t b = 0; b < blocks; b++) {
                const int64_t at[3] = {n, y0 + row, x0};
                kernels->multiply(tap, shift, taps, job->op->in[0].c, b, weights, sums);
                finish(job, sums, at, b, panel % job->panels * kernels->block, up / job->up_x,
                       up % job->up_x);
            }
        }
    }
}

static void bf16_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    bf16_job job = job_of(cpu, op);
    job.buffers = buffers;
    tess_pool_run(cpu->pool, op->out[0].n * job.row_groups * job.segments, bf16_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if (!tess_cpu_is_conv(op) || !tess_cpu_of(device)->f32 || tess_op_precision(op) != TESS_BF16)
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_refuses_layer(device, op, why);
}

const tess_kernel tess_cpu_bf16 = {
    .name = "bf16", .refuses = refuses, .needs = bf16_needs, .pack = bf16_pack, .run = bf16_run};
