/* The gradient of a 3x3 kernel by Winograd's algorithm, with four times fewer products (simd_grad.c has the formulas).
 * An item is a chunk of 4x4 output tiles and a block of channels. It transforms a group of tiles of input and gradient
 * into its thread's scratch, and for each of 36 points adds their products to a matrix of output by input channels;
 * at its end it transforms the matrices to the nine taps. The bias is summed on the way. */
#include <string.h>

#include "base/checked.h"
#include "cpu/conv/grad.h"

/* Tiles of a group: the scratch of a thread should fit its cache. Odd, so that the points of a tile do not fall onto
 * the same lines of the cache. */
enum { GROUP = 47, LEAST = 3 * GROUP, SIDE = 4, REACH = 6, POINTS = 36, TAPS = 9, NARROWEST = 16 };

typedef struct winograd_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    const tess_f32_kernels *kernels;
    tess_grad_sums sums;
    int64_t tiles_y, tiles_x, tiles;
    /* Of a thread's scratch, in floats: the transformed input and gradient of a group, the matrices, the values of
     * a tile in fp32. Behind the partial sums. */
    int64_t v_floats, u_floats, m_floats, thread_floats;
    float *partial, *zeros, *scratch;
} winograd_job;

static winograd_job job_of(const tess_cpu *cpu, const tess_op *op)
{
    winograd_job job = {.op = op, .kernels = cpu->f32};
    tess_grad_sums *sums = &job.sums;
    *sums = (tess_grad_sums){
        .kernels = cpu->f32->grad, .rows = op->in[1].c, .columns = op->in[0].c, .parts = TAPS};
    sums->row_blocks = tess_ceil_div(sums->rows, TESS_GRAD_SIDE);
    sums->column_blocks = tess_ceil_div(sums->columns, TESS_GRAD_SIDE);
    sums->bias = op->outputs > 1 ? op->in[1].c : 0;
    job.tiles_y = tess_ceil_div(op->in[1].h, SIDE);
    job.tiles_x = tess_ceil_div(op->in[1].w, SIDE);
    job.tiles = op->in[1].n * job.tiles_y * job.tiles_x;
    sums->chunks = tess_grad_chunks(sums, job.tiles, LEAST);
    const int64_t rows = tess_min_i64(sums->rows, TESS_GRAD_SIDE),
                  columns = tess_min_i64(sums->columns, TESS_GRAD_SIDE);
    job.u_floats = POINTS * GROUP * rows;
    job.v_floats = POINTS * GROUP * columns;
    job.m_floats = POINTS * rows * columns;
    job.thread_floats = job.u_floats + job.v_floats + job.m_floats + POINTS * TESS_GRAD_SIDE;
    return job;
}

static void winograd_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    const winograd_job job = job_of(cpu, op);
    const int64_t floats =
        tess_grad_floats(&job.sums) + TESS_GRAD_SIDE + job.thread_floats * tess_pool_threads(cpu->pool);
    *needs = (tess_op_needs){.block = 1, .workspace = (size_t)floats * sizeof(float)};
}

/* The pixels of a square of `side` from (y, x) on, `count` channels from `channel` on. Values of bf16 are widened into
 * `wide`. */
static void find_pixels(const winograd_job *job, int in, const int64_t at[3], int side, int64_t channel,
                        int64_t count, float *wide, const float **pixel)
{
    const tess_tensor *t = &job->op->in[in];
    for (int i = 0; i < side * side; i++) {
        const int64_t y = at[1] + i / side, x = at[2] + i % side;
        const int64_t from = at[0] * t->stride_n + y * t->stride_h + x * t->stride_w + channel;
        pixel[i] = job->zeros;
        if (y < 0 || y >= t->h || x < 0 || x >= t->w)
            continue;
        if (t->dtype == TESS_F32) {
            pixel[i] = (const float *)job->buffers->in[in] + from;
            continue;
        }
        job->sums.kernels->widen((const uint16_t *)job->buffers->in[in] + from, count,
                                 wide + i * TESS_GRAD_SIDE);
        pixel[i] = wide + i * TESS_GRAD_SIDE;
    }
}

/* A block of the matrix: its first channels, and how many. */
typedef struct channel_block {
    int64_t row, rows, column, columns;
} channel_block;

static void transform_tile(const winograd_job *job, const channel_block *block, int64_t index, int64_t tile,
                           float *v, float *u, float *wide, float *bias)
{
    const float *pixel[POINTS];
    const int64_t per_image = job->tiles_y * job->tiles_x, y = index % per_image / job->tiles_x * SIDE,
                  x = index % job->tiles_x * SIDE;
    const int64_t gradient[3] = {index / per_image, y, x},
                  input[3] = {index / per_image, y - job->op->pad_before[TESS_HEIGHT],
                              x - job->op->pad_before[TESS_WIDTH]};
    find_pixels(job, 0, input, REACH, block->column, block->columns, wide, pixel);
    job->kernels->winograd.input((const void *const *)pixel, block->columns, v, GROUP * block->columns, tile);
    find_pixels(job, 1, gradient, SIDE, block->row, block->rows, wide, pixel);
    job->sums.kernels->gradient(pixel, block->rows, u, GROUP, tile, bias);
}

static void chunk_item(void *arg, int64_t item, int thread)
{
    const winograd_job *job = arg;
    const tess_grad_sums *sums = &job->sums;
    const int64_t chunk = item % sums->chunks, pair = item / sums->chunks,
                  row_block = pair / sums->column_blocks, column_block = pair % sums->column_blocks;
    const channel_block block = {row_block * TESS_GRAD_SIDE, tess_grad_part(sums->rows, row_block, 1),
                                 column_block * TESS_GRAD_SIDE,
                                 tess_grad_part(sums->columns, column_block, 1)};
    const int64_t first = chunk * job->tiles / sums->chunks, last = (chunk + 1) * job->tiles / sums->chunks;
    float *v = job->scratch + thread * job->thread_floats, *u = v + job->v_floats, *m = u + job->u_floats,
          *wide = m + job->m_floats, *bias = NULL;
    if (sums->bias && column_block == 0) {
        bias = tess_grad_bias(sums, job->partial, chunk) + block.row;
        memset(bias, 0, (size_t)block.rows * sizeof *bias);
    }
    for (int64_t from = first; from < last; from += GROUP) {
        const int64_t count = tess_min_i64(GROUP, last - from);
        for (int64_t t = 0; t < count; t++)
            transform_tile(job, &block, from + t, t, v, u, wide, bias);
        for (int64_t p = 0; p < POINTS; p++) {
            const tess_outer product = {u + p * GROUP * block.rows,
                                        v + p * GROUP * block.columns,
                                        block.rows,
                                        block.columns,
                                        count,
                                        block.rows,
                                        block.columns};
            sums->kernels->outer(&product, m + p * block.rows * block.columns, from > first);
        }
    }
    sums->kernels->taps(m, block.rows * block.columns,
                        tess_grad_block(sums, job->partial, chunk, row_block, column_block));
}

static tess_grad_line target(const tess_op *op, const tess_op_buffers *buffers, int64_t part, int64_t row)
{
    return (tess_grad_line){(float *)buffers->out[0] + row * op->in[0].c * TAPS + part, TAPS};
}

static void winograd_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                         tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    winograd_job job = job_of(cpu, op);
    job.buffers = buffers;
    job.partial = buffers->workspace;
    job.zeros = job.partial + tess_grad_floats(&job.sums);
    job.scratch = job.zeros + TESS_GRAD_SIDE;
    memset(job.zeros, 0, TESS_GRAD_SIDE * sizeof(float));
    tess_pool_run(cpu->pool, job.sums.chunks * job.sums.row_blocks * job.sums.column_blocks, chunk_item,
                  &job);
    tess_grad_reduce(cpu, &job.sums, op, buffers, job.partial, target);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    if (op->kind != TESS_OP_CONV_GRAD || !cpu->f32)
        return tess_kernel_refuse(why, NULL);
    TESS_TRY(tess_cpu_conv_grad_refuses(device, op, why));
    const bool square = op->kernel[TESS_HEIGHT] == 3 && op->kernel[TESS_WIDTH] == 3 &&
                        op->stride[TESS_HEIGHT] == 1 && op->stride[TESS_WIDTH] == 1;
    const tess_grad_kernels *kernels = cpu->f32->grad;
    if (!square || op->in[0].d != 1 || op->in[1].d != 1 || op->in[0].c % kernels->block ||
        op->in[1].c % kernels->block || tess_min_i64(op->in[0].c, op->in[1].c) < NARROWEST)
        return tess_kernel_refuse(why, "Winograd's kernels take 3x3 with stride 1 and blocks of channels");
    return TESS_OK;
}

const tess_kernel tess_cpu_grad_winograd = {
    .name = "grad winograd", .refuses = refuses, .needs = winograd_needs, .run = winograd_run};
