/* The gradient of any kernel as a matrix product over the pixels: rows are the values of a patch (taps by channels),
 * columns the channels of a pixel. Patches are of the input and pixels of the output's gradient; for stride 1 and an
 * input with more channels it is the other way round, with the taps in reverse order, so that the columns fill
 * vectors in the last layer of a network too. An item is a chunk of pixel rows and a block of the matrix. It packs
 * the patches of a part of a row, and pixels only if they do not fill register blocks or are bf16. */
#include <string.h>

#include "base/checked.h"
#include "cpu/conv/grad.h"

/* Pixels that are packed at a time; a chunk has at least LEAST. */
enum { PART = 64, LEAST = 1024 };

typedef struct patch_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    tess_grad_sums sums;
    int patched, plain; /* the inputs whose patches are rows, and whose pixels are columns */
    int64_t pad_y, pad_x;
    int64_t pixel_rows;
    int64_t thread_floats;
    float *partial, *scratch;
} patch_job;

static bool is_swapped(const tess_op *op)
{
    return op->in[0].c > op->in[1].c && op->stride[TESS_HEIGHT] == 1 && op->stride[TESS_WIDTH] == 1;
}

static patch_job job_of(const tess_cpu *cpu, const tess_op *op)
{
    const bool swapped = is_swapped(op);
    patch_job job = {.op = op, .patched = swapped ? 1 : 0, .plain = swapped ? 0 : 1};
    tess_grad_sums *sums = &job.sums;
    const tess_tensor *plain = &op->in[job.plain];
    job.pad_y =
        swapped ? op->kernel[TESS_HEIGHT] - 1 - op->pad_before[TESS_HEIGHT] : op->pad_before[TESS_HEIGHT];
    job.pad_x =
        swapped ? op->kernel[TESS_WIDTH] - 1 - op->pad_before[TESS_WIDTH] : op->pad_before[TESS_WIDTH];
    *sums = (tess_grad_sums){.kernels = cpu->f32->grad, .columns = plain->c, .parts = 1};
    sums->rows = tess_op_taps(op) * op->in[job.patched].c;
    if (!swapped && op->outputs > 1)
        sums->rows++; /* a row of ones: the bias */
    sums->row_blocks = tess_ceil_div(sums->rows, TESS_GRAD_SIDE);
    sums->column_blocks = tess_ceil_div(sums->columns, TESS_GRAD_SIDE);
    job.pixel_rows = plain->n * plain->h;
    sums->chunks = tess_min_i64(tess_grad_chunks(sums, job.pixel_rows * plain->w, LEAST), job.pixel_rows);
    job.thread_floats = 2 * PART * TESS_GRAD_SIDE;
    return job;
}

static size_t bias_bytes(const tess_op *op)
{
    return is_swapped(op) && op->outputs > 1 ? tess_cpu_channel_sum_bytes(&op->in[1]) : 0;
}

static void patch_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    const patch_job job = job_of(cpu, op);
    const int64_t floats = tess_grad_floats(&job.sums) + job.thread_floats * tess_pool_threads(cpu->pool);
    *needs = (tess_op_needs){
        .block = 1, .workspace = tess_align_size(bias_bytes(op), 64) + (size_t)floats * sizeof(float)};
}

static void copy(const patch_job *job, const tess_tensor *t, const void *data, int64_t at, int64_t count,
                 float *to)
{
    const float *from = (const float *)data + at;
    if (t->dtype == TESS_BF16)
        job->sums.kernels->widen((const uint16_t *)data + at, count, to);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = from[i];
}

/* Rows [first, last) of the matrix for one pixel: values of patch row ky of the image row `y`, or zeros. */
static void pack_line(const patch_job *job, int64_t n, int64_t y, int64_t x0, int64_t first, int64_t last,
                      float *to)
{
    const tess_tensor *t = &job->op->in[job->patched];
    const void *data = job->buffers->in[job->patched];
    const int64_t row = n * t->stride_n + y * t->stride_h, kernel = job->op->kernel[TESS_WIDTH];
    const bool inside = y >= 0 && y < t->h;
    if (inside && x0 >= 0 && x0 + kernel <= t->w && t->stride_w == t->c) {
        copy(job, t, data, row + x0 * t->c + first, last - first, to);
        return;
    }
    for (int64_t r = first, end; r < last; to += end - r, r = end) {
        const int64_t x = x0 + r / t->c;
        end = tess_min_i64(last, (r / t->c + 1) * t->c);
        if (inside && x >= 0 && x < t->w)
            copy(job, t, data, row + x * t->stride_w + r % t->c, end - r, to);
        else
            memset(to, 0, (size_t)(end - r) * sizeof *to);
    }
}

/* Rows [first, first + rows) of the matrix for `count` pixels from (y, x) on, as [pixel][rows]. */
static void pack_patches(const patch_job *job, const int64_t at[3], int64_t count, int64_t first,
                         int64_t rows, float *to)
{
    const tess_op *op = job->op;
    const int64_t line = op->kernel[TESS_WIDTH] * op->in[job->patched].c,
                  values = line * op->kernel[TESS_HEIGHT], last = tess_min_i64(first + rows, job->sums.rows);
    for (int64_t i = 0; i < count; i++, to += rows) {
        const int64_t x = (at[2] + i) * op->stride[TESS_WIDTH] - job->pad_x;
        for (int64_t r = first, end; r < last && r < values; r = end) {
            const int64_t ky = r / line;
            end = tess_min_i64(last, (ky + 1) * line);
            pack_line(job, at[0], at[1] * op->stride[TESS_HEIGHT] - job->pad_y + ky, x, r - ky * line,
                      end - ky * line, to + r - first);
        }
        for (int64_t r = tess_max_i64(values, first); r < first + rows; r++)
            to[r - first] = r < last ? 1 : 0;
    }
}

/* `columns` channels of `count` pixels, padded with zeros; directly from the image where that is possible. */
static const float *pixels_of(const patch_job *job, const int64_t at[3], int64_t count, int64_t first,
                              int64_t columns, float *packed, int64_t *step)
{
    const tess_tensor *t = &job->op->in[job->plain];
    const void *data = job->buffers->in[job->plain];
    const int64_t from = at[0] * t->stride_n + at[1] * t->stride_h + at[2] * t->stride_w + first;
    const int64_t real = tess_min_i64(columns, t->c - first);
    *step = t->stride_w;
    if (t->dtype == TESS_F32 && real == columns)
        return (const float *)data + from;
    *step = columns;
    for (int64_t i = 0; i < count; i++) {
        copy(job, t, data, from + i * t->stride_w, real, packed + i * columns);
        for (int64_t c = real; c < columns; c++)
            packed[i * columns + c] = 0;
    }
    return packed;
}

static void chunk_item(void *arg, int64_t item, int thread)
{
    const patch_job *job = arg;
    const tess_grad_sums *sums = &job->sums;
    const tess_tensor *plain = &job->op->in[job->plain];
    const int64_t chunk = item % sums->chunks, pair = item / sums->chunks,
                  row_block = pair / sums->column_blocks, column_block = pair % sums->column_blocks;
    const int64_t rows = tess_grad_part(sums->rows, row_block, sums->kernels->rows),
                  columns = tess_grad_part(sums->columns, column_block, sums->kernels->block);
    float *patches = job->scratch + thread * job->thread_floats, *packed = patches + PART * TESS_GRAD_SIDE;
    float *m = tess_grad_block(sums, job->partial, chunk, row_block, column_block);
    bool add = false;
    for (int64_t row = chunk * job->pixel_rows / sums->chunks;
         row < (chunk + 1) * job->pixel_rows / sums->chunks; row++)
        for (int64_t x = 0; x < plain->w; x += PART, add = true) {
            const int64_t at[3] = {row / plain->h, row % plain->h, x},
                          count = tess_min_i64(PART, plain->w - x);
            tess_outer product = {
                .a = patches, .a_step = rows, .depth = count, .rows = rows, .columns = columns};
            pack_patches(job, at, count, row_block * TESS_GRAD_SIDE, rows, patches);
            product.b =
                pixels_of(job, at, count, column_block * TESS_GRAD_SIDE, columns, packed, &product.b_step);
            sums->kernels->outer(&product, m, add);
        }
}

static tess_grad_line target(const tess_op *op, const tess_op_buffers *buffers, int64_t part, int64_t row)
{
    (void)part;
    const int64_t taps = tess_op_taps(op), cin = op->in[0].c, narrow = is_swapped(op) ? op->in[1].c : cin,
                  tap = row / narrow, channel = row % narrow;
    float *kernel = buffers->out[0];
    if (tap == taps)
        return (tess_grad_line){buffers->out[1], 1};
    if (is_swapped(op))
        return (tess_grad_line){kernel + channel * cin * taps + taps - 1 - tap, taps};
    return (tess_grad_line){kernel + channel * taps + tap, cin * taps};
}

static void patch_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                      tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    patch_job job = job_of(cpu, op);
    job.buffers = buffers;
    job.partial = (float *)((char *)buffers->workspace + tess_align_size(bias_bytes(op), 64));
    job.scratch = job.partial + tess_grad_floats(&job.sums);
    tess_pool_run(cpu->pool, job.sums.chunks * job.sums.row_blocks * job.sums.column_blocks, chunk_item,
                  &job);
    tess_grad_reduce(cpu, &job.sums, op, buffers, job.partial, target);
    if (bias_bytes(op))
        tess_cpu_channel_sums(cpu, &op->in[1], buffers->in[1], op->grad.accumulate, buffers->out[1],
                              buffers->workspace);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    if (op->kind != TESS_OP_CONV_GRAD || !tess_cpu_of(device)->f32)
        return tess_kernel_refuse(why, NULL);
    TESS_TRY(tess_cpu_conv_grad_refuses(device, op, why));
    if (op->in[0].d != 1 || op->in[1].d != 1)
        return tess_kernel_refuse(why, "patches are of images, not of volumes");
    return TESS_OK;
}

const tess_kernel tess_cpu_grad_patches = {
    .name = "grad patches", .refuses = refuses, .needs = patch_needs, .run = patch_run};
