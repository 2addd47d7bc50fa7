/* The arithmetic of a Winograd convolution: how the work is divided, and the tiles of a group. */
#include <string.h>

#include "base/checked.h"
#include "cpu/conv/winograd_impl.h"

/* About this many tiles per group; output channels per inverse transform. */
enum { GROUP = 72, CHUNK = 64 };
/* Weights larger than CACHED after their transform are transformed in parts of up to PART bytes, if a thread has FEW groups at most.
 * Several threads would all transform the same weights, which pays if each has ENOUGH tiles. */
enum { CACHED = 4 << 20, PART = 5 << 18, LARGE = 4 << 20, FEW = 4, ENOUGH = 48 };

static int64_t chunk_of(const tess_op *op)
{
    return tess_min_i64(op->out[0].c, CHUNK);
}

/* The tiles that a thread holds at once. The only group of one thread is halved where it is LARGE: the workspace of a thin strip
 * would otherwise be a large part of its memory. */
static int64_t held_tiles(const winograd_job *job, int64_t threads)
{
    const int64_t rows = job->kernels->rows, all = tess_round_up(job->tiles, rows);
    const bool halve = threads == 1 && job->tiles <= job->most &&
                       job->points * job->most * job->cin * job->kernels->element > LARGE;
    return tess_min_i64(halve ? tess_round_up(job->most / 2, rows) : job->most, all);
}

/* Sets the way of the weights, and the tiles of a group. Small images use smaller groups, so that every thread has work. Neither
 * changes a value. */
static void set_way(winograd_job *job, int64_t threads)
{
    const int64_t rows = job->kernels->rows, held = held_tiles(job, threads),
                  rounds = tess_max_i64(tess_ceil_div(job->tiles, threads * held), 1),
                  even = tess_round_up(tess_ceil_div(job->tiles, threads * rounds), rows);
    const size_t element = (size_t)job->kernels->element,
                 channel_bytes = (size_t)(job->points * job->cin) * element;
    int64_t chunk = job->chunk;
    while (chunk % (2 * job->kernels->block) == 0 && (size_t)chunk * channel_bytes > PART)
        chunk /= 2;
    job->part_bytes =
        (size_t)(job->points * tess_winograd_u_step(job, chunk / job->kernels->block)) * element;
    job->in_parts = job->u_bytes > CACHED && rounds <= FEW && (threads == 1 || even >= ENOUGH) &&
                    (size_t)threads * job->part_bytes <= job->u_bytes;
    const int64_t fair = threads == 1 ? job->most : tess_ceil_div(job->tiles, 4 * threads);
    job->group = job->in_parts ? even : tess_min_i64(held, tess_round_up(fair, rows));
    job->chunk = job->in_parts ? chunk : job->chunk;
}

/* Sets the bytes of the workspace, which must not shrink when the image grows. Several threads transform parts only of images
 * between two sizes, so they always have room for all weights. */
static void set_scratch(winograd_job *job, int64_t threads)
{
    const bool one_part = job->in_parts && threads == 1;
    const int64_t held = held_tiles(job, threads), chunk = one_part ? job->chunk : chunk_of(job->op);
    job->weight_bytes = one_part ? job->part_bytes : job->u_bytes;
    job->v_bytes =
        tess_align_size((size_t)(job->points * tess_winograd_v_step(job, held) * job->kernels->element), 64);
    job->thread_bytes =
        job->v_bytes + (size_t)(job->points * tess_winograd_m_step(held, chunk)) * sizeof(float);
}

winograd_job tess_winograd_job(const tess_cpu *cpu, const tess_op *op)
{
    winograd_job job = {.op = op, .cin = op->in[0].c};
    job.kernels = op->in[0].dtype == TESS_BF16 ? cpu->bf16->winograd : &cpu->f32->winograd;
    const size_t element = (size_t)job.kernels->element;
    const int64_t reach = job.kernels->side + 2;
    job.points = reach * reach;
    job.blocks = op->out[0].c / job.kernels->block;
    job.bias_at = tess_align_size((size_t)(op->out[0].c * op->in[0].c * 9) * element, 64);
    job.tiles_y = tess_ceil_div(op->out[0].h, job.kernels->side);
    job.tiles_x = tess_ceil_div(op->out[0].w, job.kernels->side);
    job.tiles = op->out[0].n * job.tiles_y * job.tiles_x;
    job.most = GROUP / job.kernels->rows * job.kernels->rows;
    job.chunk = chunk_of(op);
    job.u_bytes =
        tess_align_size((size_t)(job.points * tess_winograd_u_step(&job, job.blocks)) * element, 64);
    job.zero_bytes = tess_align_size((size_t)op->in[0].c * element, 64);
    set_way(&job, tess_pool_threads(cpu->pool));
    set_scratch(&job, tess_pool_threads(cpu->pool));
    return job;
}

/* The position of a tile of the range in the output. */
static void tile_origin(const winograd_job *job, int64_t at_range, int64_t at[3])
{
    const tile_range *range = &job->range;
    const int64_t index = range->first + at_range + (at_range < range->before_gap ? 0 : range->gap),
                  per_image = job->tiles_y * job->tiles_x;
    at[0] = index / per_image;
    at[1] = index % per_image / job->tiles_x * job->kernels->side;
    at[2] = index % job->tiles_x * job->kernels->side;
}

static int64_t place(const tess_tensor *t, int64_t n, int64_t y, int64_t x)
{
    return n * t->stride_n + y * t->stride_h + x * t->stride_w;
}

static void transform_input(const winograd_job *job, int64_t at_range, int64_t tile, int64_t step, void *v)
{
    const tess_op *op = job->op;
    const tess_tensor *in = &op->in[0];
    const void *pixel[TESS_WINOGRAD_POINTS];
    const int reach = job->kernels->side + 2;
    int64_t at[3];
    tile_origin(job, at_range, at);
    for (int i = 0; i < reach; i++) {
        int64_t y = at[1] + i - op->pad_before[TESS_HEIGHT];
        for (int j = 0; j < reach; j++) {
            int64_t x = at[2] + j - op->pad_before[TESS_WIDTH];
            bool inside = y >= 0 && y < in->h && x >= 0 && x < in->w;
            pixel[reach * i + j] =
                inside ? (const char *)job->buffers->in[0] + place(in, at[0], y, x) * job->kernels->element
                       : job->zeros;
        }
    }
    job->kernels->input(pixel, in->c, v, step, tile);
}

static void transform_output(const winograd_job *job, int64_t at_range, const float *m, int64_t step,
                             int64_t channel)
{
    const tess_op *op = job->op;
    const int side = job->kernels->side;
    tess_winograd_out to = {.residuals = tess_op_residuals(op),
                            .relu = tess_op_relu(op),
                            .mapped = op->mapped,
                            .masked = op->masked};
    int64_t at[3];
    tile_origin(job, at_range, at);
    for (int i = 0; i < side; i++)
        for (int j = 0; j < side; j++) {
            int64_t y = at[1] + i, x = at[2] + j;
            if (y >= op->out[0].h || x >= op->out[0].w)
                continue;
            to.out[side * i + j] = (char *)job->buffers->out[0] +
                                   (place(&op->out[0], at[0], y, x) + channel) * job->kernels->element;
            if (op->mapped)
                to.map[side * i + j] =
                    ((const float *)job->buffers->in[op->inputs - 1])[place(tess_op_map(op), at[0], y, x)];
            if (op->masked)
                to.mask[side * i + j] =
                    (const char *)job->buffers->in[op->inputs - 1] +
                    (place(tess_op_mask(op), at[0], y, x) + channel) * job->kernels->element;
            for (int r = 0; r < tess_op_residuals(op); r++)
                to.residual[r][side * i + j] =
                    (const char *)job->buffers->in[1 + r] +
                    (place(&op->in[1 + r], at[0], y, x) + channel) * job->kernels->element;
        }
    if (op->bias)
        to.bias = (const float *)((const char *)job->buffers->weights + job->bias_at) + channel;
    job->kernels->output(m, step, tess_min_i64(job->chunk, op->out[0].c - channel), &to);
}

/* The transformed weights of some blocks of channels, and how many bytes it is from point to point. */
static const char *weights_of(const winograd_job *job, int64_t channel, int64_t blocks, int thread,
                              size_t *step)
{
    const size_t element = (size_t)job->kernels->element;
    const int64_t elements = tess_winograd_u_step(job, job->in_parts ? blocks : job->blocks);
    *step = (size_t)elements * element;
    if (!job->in_parts)
        return job->u + (size_t)(channel * job->cin) * element;
    char *part = job->u + (size_t)thread * job->part_bytes;
    job->kernels->weights((const char *)job->buffers->weights + (size_t)(channel * job->cin * 9) * element,
                          part, elements, job->cin, 0, blocks * job->cin);
    return part;
}

tile_group tess_winograd_group(const winograd_job *job, int64_t item, int thread)
{
    tile_group g = {.first = item * job->group, .v = job->scratch + (size_t)thread * job->thread_bytes};
    g.count = tess_min_i64(job->group, job->range.count - g.first);
    g.rows = tess_round_up(g.count, job->kernels->rows);
    g.m = (float *)(void *)(g.v + job->v_bytes);
    return g;
}

void tess_winograd_transform(const winograd_job *job, const tile_group *g)
{
    for (int64_t t = 0; t < g->count; t++)
        transform_input(job, g->first + t, t, tess_winograd_v_step(job, g->rows), g->v);
}

/* The output channels of a chunk. Rows beyond `count` multiply old values of an earlier group; their results are never read. */
void tess_winograd_chunk(const winograd_job *job, const tile_group *g, int64_t channel, int thread)
{
    const int64_t cin = job->cin, rows = g->rows, block = job->kernels->block,
                  blocks = tess_min_i64(job->chunk, job->op->out[0].c - channel) / block,
                  v_step = tess_winograd_v_step(job, rows),
                  m_step = tess_winograd_m_step(rows, blocks * block);
    const size_t element = (size_t)job->kernels->element;
    size_t step;
    const char *u = weights_of(job, channel, blocks, thread, &step);
    for (int64_t point = 0; point < job->points; point++)
        job->kernels->multiply(g->v + (size_t)(point * v_step) * element, u + (size_t)point * step,
                               g->m + point * m_step, rows, cin, blocks);
    for (int64_t t = 0; t < g->count; t++)
        transform_output(job, g->first + t, g->m + t * blocks * block, m_step, channel);
}
