/* Winograd convolution: groups of output blocks go through transform, products and inverse in one thread's scratch, so
 * that nothing but input and output touches the arena. The weights are transformed at each run into a scratch that all
 * layers share: kept, they would be four times the file. */
#include <string.h>

#include "base/checked.h"
#include "cpu/cpu.h"

enum { GROUP = 48, CHUNK = 64 }; /* tiles of a group; output channels of one inverse transform */

typedef struct winograd_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    const tess_f32_kernels *kernels;
    tess_f32_layout layout;
    int64_t tiles_y, tiles_x, tiles; /* tiles: of the whole batch */
    int64_t group;                   /* tiles that one item takes */
    float *u, *zeros, *scratch;
    int64_t scratch_floats; /* of one thread */
} winograd_job;

static int64_t chunk_of(const tess_op *op)
{
    return tess_min_i64(op->out.c, CHUNK);
}

static int64_t scratch_floats(const tess_op *op)
{
    return TESS_WINOGRAD_POINTS * GROUP * (op->in.c + chunk_of(op));
}

static int64_t u_floats(const tess_op *op)
{
    return TESS_WINOGRAD_POINTS * op->in.c * op->out.c;
}

static void winograd_needs(const tess_cpu *cpu, const tess_op *op, tess_op_needs *needs)
{
    tess_f32_layout layout = tess_f32_layout_of(cpu, op, true);
    int64_t floats = u_floats(op) + op->in.c + scratch_floats(op) * tess_pool_threads(cpu->pool);
    needs->weights = (size_t)layout.floats * sizeof(float);
    needs->workspace = (size_t)floats * sizeof(float);
    needs->block = TESS_WINOGRAD_SIDE;
}

static void winograd_pack(const tess_cpu *cpu, const tess_op *op, tess_weight_part part, int64_t first, int64_t count,
                          const float *values, void *packed)
{
    tess_f32_layout layout = tess_f32_layout_of(cpu, op, true);
    tess_f32_layout_pack(&layout, op, part, first, count, values, packed);
}

/* Where tile `index` of the batch starts in the output. */
static void tile_origin(const winograd_job *job, int64_t index, int64_t at[3])
{
    int64_t per_image = job->tiles_y * job->tiles_x;
    at[0] = index / per_image;
    at[1] = index % per_image / job->tiles_x * TESS_WINOGRAD_SIDE;
    at[2] = index % job->tiles_x * TESS_WINOGRAD_SIDE;
}

static void transform_input(const winograd_job *job, int64_t index, float *v, int64_t step)
{
    const tess_op *op = job->op;
    const tess_tensor *in = &op->in;
    const float *pixel[TESS_WINOGRAD_POINTS];
    int64_t at[3];
    tile_origin(job, index, at);
    const float *image = (const float *)job->buffers->in + at[0] * in->stride_n;
    for (int i = 0; i < 6; i++) {
        int64_t y = at[1] + i - op->pad_before[TESS_HEIGHT];
        for (int j = 0; j < 6; j++) {
            int64_t x = at[2] + j - op->pad_before[TESS_WIDTH];
            bool inside = y >= 0 && y < in->h && x >= 0 && x < in->w;
            pixel[6 * i + j] = inside ? image + y * in->stride_h + x * in->stride_w : job->zeros;
        }
    }
    job->kernels->winograd_input(pixel, in->c, v, step);
}

static void transform_output(const winograd_job *job, int64_t index, const float *m, int64_t step, int64_t channel)
{
    const tess_op *op = job->op;
    const tess_tensor *out = &op->out;
    tess_winograd_out to = {.residuals = op->residuals, .relu = op->relu};
    int64_t at[3];
    tile_origin(job, index, at);
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++) {
            int64_t y = at[1] + i, x = at[2] + j;
            if (y >= out->h || x >= out->w)
                continue;
            to.out[4 * i + j] = (float *)job->buffers->out + at[0] * out->stride_n + y * out->stride_h +
                                x * out->stride_w + channel;
            for (int r = 0; r < op->residuals; r++) {
                const tess_tensor *t = &op->residual[r];
                to.residual[r][4 * i + j] = (const float *)job->buffers->residual[r] + at[0] * t->stride_n +
                                            y * t->stride_h + x * t->stride_w + channel;
            }
        }
    if (op->bias)
        to.bias = (const float *)job->buffers->weights + job->layout.bias_at + channel;
    job->kernels->winograd_output(m, step, tess_min_i64(chunk_of(op), out->c - channel), &to);
}

static void weights_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const winograd_job *job = arg;
    const tess_f32_layout *layout = &job->layout;
    job->kernels->winograd_weights(job->buffers->weights, job->u, layout->blocks, layout->cin, item * layout->cin,
                                   (item + 1) * layout->cin);
}

static void group_item(void *arg, int64_t item, int thread)
{
    const winograd_job *job = arg;
    const tess_f32_layout *layout = &job->layout;
    const int64_t cin = layout->cin, first = item * job->group, count = tess_min_i64(job->group, job->tiles - first);
    const int64_t rows = tess_round_up(count, job->kernels->rows), chunk = chunk_of(job->op);
    float *v = job->scratch + thread * job->scratch_floats, *m = v + TESS_WINOGRAD_POINTS * GROUP * cin;
    for (int64_t t = 0; t < count; t++)
        transform_input(job, first + t, v + t * cin, rows * cin);
    /* Rows beyond `count` multiply what an earlier group left there: harmless, never read. */
    for (int64_t channel = 0; channel < job->op->out.c; channel += chunk) {
        const int64_t blocks = tess_min_i64(chunk, job->op->out.c - channel) / layout->block;
        for (int point = 0; point < TESS_WINOGRAD_POINTS; point++) {
            const float *u = job->u + (point * layout->blocks * layout->block + channel) * cin;
            job->kernels->winograd_multiply(v + point * rows * cin, u, m + point * rows * blocks * layout->block, rows,
                                            cin, blocks);
        }
        for (int64_t t = 0; t < count; t++)
            transform_output(job, first + t, m + t * blocks * layout->block, rows * blocks * layout->block, channel);
    }
}

static void winograd_run(const tess_cpu *cpu, const tess_op *op, const tess_op_buffers *buffers)
{
    winograd_job job = {.op = op, .buffers = buffers, .kernels = cpu->f32};
    job.layout = tess_f32_layout_of(cpu, op, true);
    job.tiles_y = tess_ceil_div(op->out.h, TESS_WINOGRAD_SIDE);
    job.tiles_x = tess_ceil_div(op->out.w, TESS_WINOGRAD_SIDE);
    job.tiles = op->out.n * job.tiles_y * job.tiles_x;
    /* Small images: smaller groups, so that every thread has work. Grouping never changes a value. */
    int64_t fair = tess_ceil_div(job.tiles, 4 * tess_pool_threads(cpu->pool));
    job.group = tess_min_i64(GROUP, tess_round_up(fair, job.kernels->rows));
    job.u = buffers->workspace;
    job.zeros = job.u + u_floats(op);
    job.scratch = job.zeros + op->in.c;
    job.scratch_floats = scratch_floats(op);
    memset(job.zeros, 0, (size_t)op->in.c * sizeof(float));
    tess_pool_run(cpu->pool, job.layout.blocks, weights_item, &job);
    tess_pool_run(cpu->pool, tess_ceil_div(job.tiles, job.group), group_item, &job);
}

const tess_cpu_family tess_cpu_winograd = {"winograd", winograd_needs, winograd_pack, winograd_run};
