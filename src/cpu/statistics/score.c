/* Scores of pixels: |F (x - mu)|^2. A group of pixels is turned so that a pixel is a column; F (x - mu) of all its pixels is
 * then the sum of outer products of the columns of F with rows of values, some rows of F at a time, and their squares are
 * added at once.
 *
 * The order of each sum depends on nothing but the channels and rows of F. */
#include <string.h>

#include "base/checked.h"
#include "cpu/statistics/statistics.h"

enum {
    GROUP = 64,
    AT_ONCE = 16
}; /* pixels; rows of F whose products are kept, a multiple of every register block */

typedef struct score_job {
    const tess_grad_kernels *kernels;
    const tess_op *op;
    const tess_op_buffers *buffers;
    int64_t rows, all; /* of F; rounded up to register blocks */
    float *factor;     /* F turned: [channel][row] */
    float *scratch;
} score_job;

static score_job job_of(const tess_cpu *cpu, const tess_op *op)
{
    score_job job = {.kernels = cpu->f32->grad, .op = op, .rows = tess_cpu_pixels(&op->in[2])};
    job.all = tess_round_up(job.rows, job.kernels->rows);
    return job;
}

static int64_t thread_floats(const score_job *job)
{
    return (job->op->in[0].c + AT_ONCE) * GROUP;
}

static void score_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    const score_job job = job_of(cpu, op);
    *needs = (tess_op_needs){
        .workspace = (size_t)(op->in[0].c * job.all + tess_pool_threads(cpu->pool) * thread_floats(&job)) *
                     sizeof(float),
        .block = 1};
}

static void turn_factor(const score_job *job)
{
    const int64_t c = job->op->in[0].c;
    const float *from = job->buffers->in[2];
    memset(job->factor, 0, (size_t)(c * job->all) * sizeof(float));
    for (int64_t k = 0; k < job->rows; k++)
        for (int64_t i = 0; i < c; i++)
            job->factor[i * job->all + k] = from[k * c + i];
}

/* values[channel][pixel] = x - mu of `count` pixels from `first` on; zero for pixels that are missing. */
static void turn_pixels(const score_job *job, int64_t first, int64_t count, float *values)
{
    const tess_tensor *in = &job->op->in[0];
    const float *mu = job->buffers->in[1];
    if (count < GROUP)
        memset(values, 0, (size_t)(in->c * GROUP) * sizeof(float));
    for (int64_t p = 0; p < count; p++) {
        const float *pixel = (const float *)job->buffers->in[0] + tess_cpu_pixel(in, first + p);
        for (int64_t c = 0; c < in->c; c++)
            values[c * GROUP + p] = pixel[c] - mu[c];
    }
}

/* sums[pixel] += the squares of products[register row block][column block][row][column] of `rows` rows. */
static void add_squares(const tess_grad_kernels *k, const float *restrict products, int64_t rows,
                        float *restrict sums)
{
    for (int64_t r = 0; r < rows; r += k->rows)
        for (int column = 0; column < GROUP; column += k->block)
            for (int i = 0; i < k->rows; i++, products += k->block)
                for (int j = 0; j < k->block; j++)
                    sums[column + j] += products[j] * products[j];
}

static void group_item(void *arg, int64_t item, int thread)
{
    const score_job *job = arg;
    const tess_tensor *out = &job->op->out[0];
    const int64_t first = item * GROUP, count = tess_min_i64(GROUP, tess_cpu_pixels(out) - first);
    float *values = job->scratch + thread * thread_floats(job), *products = values + job->op->in[0].c * GROUP;
    float sums[GROUP] = {0};
    turn_pixels(job, first, count, values);
    tess_outer product = {
        .b = values, .a_step = job->all, .b_step = GROUP, .depth = job->op->in[0].c, .columns = GROUP};
    for (int64_t k = 0; k < job->all; k += AT_ONCE) {
        product.a = job->factor + k;
        product.rows = tess_min_i64(AT_ONCE, job->all - k);
        job->kernels->outer(&product, products, false);
        add_squares(job->kernels, products, product.rows, sums);
    }
    for (int64_t p = 0; p < count; p++)
        ((float *)job->buffers->out[0])[tess_cpu_pixel(out, first + p)] = isfinite(sums[p]) ? sums[p] : NAN;
}

static void score_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                      tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    score_job job = job_of(cpu, op);
    job.buffers = buffers;
    job.factor = buffers->workspace;
    job.scratch = job.factor + op->in[0].c * job.all;
    turn_factor(&job);
    tess_pool_run(cpu->pool, tess_ceil_div(tess_cpu_pixels(&op->out[0]), GROUP), group_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_statistics_refuses_fast(device, op, TESS_OP_SCORE, why);
}

const tess_kernel tess_cpu_score = {
    .name = "score", .refuses = refuses, .needs = score_needs, .run = score_run};
