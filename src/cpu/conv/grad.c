/* The partial sums of the gradients of a convolution's kernel, and their sum. */
#include "cpu/conv/grad.h"

#include "base/checked.h"

/* More chunks than this would take more memory than threads can use. */
enum { MOST_ITEMS = 64, MOST_BLOCK = 64 };

/* A power of two, which most numbers of threads divide. */
int64_t tess_grad_chunks(const tess_grad_sums *sums, int64_t units, int64_t least)
{
    const int64_t blocks = sums->row_blocks * sums->column_blocks,
                  most = tess_min_i64(units / least, tess_ceil_div(MOST_ITEMS, blocks));
    int64_t chunks = 1;
    while (2 * chunks <= most)
        chunks *= 2;
    return chunks;
}

static int64_t block_floats(const tess_grad_sums *sums)
{
    return sums->parts * tess_grad_part(sums->rows, 0, sums->kernels->rows) *
           tess_grad_part(sums->columns, 0, sums->kernels->block);
}

static int64_t chunk_floats(const tess_grad_sums *sums)
{
    return block_floats(sums) * sums->row_blocks * sums->column_blocks + sums->bias;
}

int64_t tess_grad_floats(const tess_grad_sums *sums)
{
    return chunk_floats(sums) * sums->chunks;
}

float *tess_grad_block(const tess_grad_sums *sums, float *partial, int64_t chunk, int64_t row_block,
                       int64_t column_block)
{
    return partial + chunk * chunk_floats(sums) +
           (row_block * sums->column_blocks + column_block) * block_floats(sums);
}

float *tess_grad_bias(const tess_grad_sums *sums, float *partial, int64_t chunk)
{
    return partial + (chunk + 1) * chunk_floats(sums) - sums->bias;
}

typedef struct reduce_job {
    const tess_grad_sums *sums;
    const tess_op *op;
    const tess_op_buffers *buffers;
    float *partial;
    tess_grad_target target;
} reduce_job;

/* Adds up `count` neighbours of all chunks, and writes them. */
static void reduce_run(const reduce_job *job, const float *from, int64_t count, tess_grad_line line)
{
    const int64_t step = chunk_floats(job->sums);
    float sum[MOST_BLOCK];
    for (int64_t i = 0; i < count; i++)
        sum[i] = from[i];
    for (int64_t chunk = 1; chunk < job->sums->chunks; chunk++)
        for (int64_t i = 0; i < count; i++)
            sum[i] += from[chunk * step + i];
    for (int64_t i = 0; i < count; i++)
        line.to[i * line.step] = job->op->grad.accumulate ? line.to[i * line.step] + sum[i] : sum[i];
}

/* One row of the matrix. */
static void reduce_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const reduce_job *job = arg;
    const tess_grad_sums *sums = job->sums;
    const int64_t row_block = item / TESS_GRAD_SIDE, row = item % TESS_GRAD_SIDE,
                  width = sums->kernels->block;
    const int64_t rows = tess_grad_part(sums->rows, row_block, sums->kernels->rows);
    for (int64_t b = 0; b < sums->column_blocks; b++) {
        const int64_t columns = tess_grad_part(sums->columns, b, width);
        const float *block = tess_grad_block(sums, job->partial, 0, row_block, b);
        for (int64_t part = 0; part < sums->parts; part++)
            for (int64_t c = 0; c < columns; c += width) {
                const int64_t at = b * TESS_GRAD_SIDE + c, count = tess_min_i64(width, sums->columns - at);
                tess_grad_line line = job->target(job->op, job->buffers, part, item);
                line.to += at * line.step;
                reduce_run(job,
                           block + part * rows * columns + tess_grad_place(sums->kernels, columns, row, c),
                           count, line);
            }
    }
}

static void reduce_bias(const reduce_job *job)
{
    const float *from = tess_grad_bias(job->sums, job->partial, 0);
    float *to = job->buffers->out[1];
    for (int64_t c = 0; c < job->op->in[1].c; c += MOST_BLOCK)
        reduce_run(job, from + c, tess_min_i64(MOST_BLOCK, job->op->in[1].c - c),
                   (tess_grad_line){to + c, 1});
}

void tess_grad_reduce(const tess_cpu *cpu, const tess_grad_sums *sums, const tess_op *op,
                      const tess_op_buffers *buffers, float *partial, tess_grad_target target)
{
    reduce_job job = {sums, op, buffers, partial, target};
    tess_pool_run(cpu->pool, sums->rows, reduce_item, &job);
    if (sums->bias)
        reduce_bias(&job);
}
