/* Winograd convolution: a thread transforms, multiplies and inverts a group of output blocks in its own
 * scratch, so that only input and output use the arena. The weights are transformed at each run into a scratch
 * that all layers share: stored, they would take four times the size of the file. Where only a few groups would read
 * them, as in the deep layers of a thin strip, writing all of them to memory and reading them back takes longer than
 * the products. There each thread transforms the weights of a few output channels at a time, into a part of that
 * scratch that stays in its cache. Where rows of a neighbour are still on their way, the tiles that read none of them come first. */
#include <string.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"

enum { NARROWEST = 16 }; /* with fewer channels the transforms cost more than they save */

/* About this many tiles per group; output channels per inverse transform. */
enum { GROUP = 72, CHUNK = 64 };
/* Weights larger than CACHED after their transform are transformed in parts of up to PART bytes, if a thread has FEW groups at most.
 * Several threads would all transform the same weights, which pays if each has ENOUGH tiles. */
enum { CACHED = 4 << 20, PART = 5 << 18, LARGE = 4 << 20, FEW = 4, ENOUGH = 48 };

/* `count` tiles from `first` on, without the `gap` tiles that follow the first `before_gap` of them. */
typedef struct tile_range {
    int64_t first, count, before_gap, gap;
} tile_range;

typedef struct winograd_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    const tess_winograd_kernels *kernels;
    int64_t points, blocks, cin;     /* blocks of output channels */
    size_t bias_at;                  /* offset in the packed weights */
    int64_t tiles_y, tiles_x, tiles; /* tiles: in the whole batch */
    int64_t group, most;             /* tiles per item, and the most of them */
    tile_range range;                /* the tiles of this round of items */
    int64_t chunk;                   /* output channels per inverse transform */
    bool in_parts;                   /* each thread transforms the weights of a chunk when it needs them */
    char *u, *zeros, *scratch;
    size_t u_bytes, part_bytes; /* of all transformed weights, and of a chunk of them */
    size_t weight_bytes, zero_bytes, v_bytes, thread_bytes;
} winograd_job;

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
    const size_t channel_bytes = (size_t)(job->points * job->cin * job->kernels->element);
    int64_t chunk = job->chunk;
    while (chunk % (2 * job->kernels->block) == 0 && (size_t)chunk * channel_bytes > PART)
        chunk /= 2;
    job->part_bytes = (size_t)chunk * channel_bytes;
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
    job->v_bytes = tess_align_size((size_t)(job->points * held * job->cin * job->kernels->element), 64);
    job->thread_bytes = job->v_bytes + (size_t)(job->points * held * chunk) * sizeof(float);
}

/* Sets everything but the pointers. */
static winograd_job job_of(const tess_cpu *cpu, const tess_op *op)
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
    job.u_bytes = tess_align_size((size_t)(job.points * op->in[0].c * op->out[0].c) * element, 64);
    job.zero_bytes = tess_align_size((size_t)op->in[0].c * element, 64);
    set_way(&job, tess_pool_threads(cpu->pool));
    set_scratch(&job, tess_pool_threads(cpu->pool));
    return job;
}

static void winograd_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    winograd_job job = job_of(cpu, op);
    needs->weights = job.bias_at + (op->bias ? (size_t)op->out[0].c * sizeof(float) : 0);
    needs->workspace =
        job.weight_bytes + job.zero_bytes + job.thread_bytes * (size_t)tess_pool_threads(cpu->pool);
    needs->block = job.kernels->side;
    needs->waits = op->out[0].n == 1;
}

/* [cout block][cin][9][block] */
static void winograd_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                          const float *values, void *packed)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    winograd_job job = job_of(cpu, op);
    if (param == TESS_PARAM_BIAS) {
        memcpy((char *)packed + job.bias_at + (size_t)first * sizeof(float), values,
               (size_t)count * sizeof(float));
        return;
    }
    const int64_t block = job.kernels->block;
    for (int64_t o = first; o < first + count; o++)
        for (int64_t i = 0; i < job.cin; i++)
            for (int64_t tap = 0; tap < 9; tap++) {
                int64_t place = ((o / block * job.cin + i) * 9 + tap) * block + o % block;
                if (op->in[0].dtype == TESS_BF16)
                    ((uint16_t *)packed)[place] = tess_float_to_bf16(*values++);
                else
                    ((float *)packed)[place] = *values++;
            }
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

static void transform_input(const winograd_job *job, int64_t at_range, int64_t tile, int64_t rows, void *v)
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
    job->kernels->input(pixel, in->c, v, rows, tile);
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

static void weights_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const winograd_job *job = arg;
    job->kernels->weights(job->buffers->weights, job->u, job->blocks, job->cin, item * job->cin,
                          (item + 1) * job->cin);
}

/* The transformed weights of some blocks of channels, and how far it is from point to point. */
static const char *weights_of(const winograd_job *job, int64_t channel, int64_t blocks, int thread,
                              size_t *step)
{
    const size_t element = (size_t)job->kernels->element;
    *step = (size_t)((job->in_parts ? blocks : job->blocks) * job->kernels->block * job->cin) * element;
    if (!job->in_parts)
        return job->u + (size_t)(channel * job->cin) * element;
    char *part = job->u + (size_t)thread * job->part_bytes;
    job->kernels->weights((const char *)job->buffers->weights + (size_t)(channel * job->cin * 9) * element,
                          part, blocks, job->cin, 0, blocks * job->cin);
    return part;
}

static void group_item(void *arg, int64_t item, int thread)
{
    const winograd_job *job = arg;
    const int64_t cin = job->cin, first = item * job->group,
                  count = tess_min_i64(job->group, job->range.count - first);
    const int64_t rows = tess_round_up(count, job->kernels->rows), chunk = job->chunk,
                  block = job->kernels->block;
    const size_t element = (size_t)job->kernels->element;
    char *v = job->scratch + (size_t)thread * job->thread_bytes;
    float *m = (float *)(v + job->v_bytes);
    for (int64_t t = 0; t < count; t++)
        transform_input(job, first + t, t, rows, v);
    /* Rows beyond `count` multiply old values of an earlier group; their results are never read. */
    for (int64_t channel = 0; channel < job->op->out[0].c; channel += chunk) {
        const int64_t blocks = tess_min_i64(chunk, job->op->out[0].c - channel) / block;
        size_t step;
        const char *u = weights_of(job, channel, blocks, thread, &step);
        for (int64_t point = 0; point < job->points; point++)
            job->kernels->multiply(v + (size_t)(point * rows * cin) * element, u + (size_t)point * step,
                                   m + point * rows * blocks * block, rows, cin, blocks);
        for (int64_t t = 0; t < count; t++)
            transform_output(job, first + t, m + t * blocks * block, rows * blocks * block, channel);
    }
}

static void run_range(const tess_cpu *cpu, winograd_job *job, tile_range range)
{
    job->range = range;
    tess_pool_run(cpu->pool, tess_ceil_div(range.count, job->group), group_item, job);
}

/* The tiles that read no late rows: whole rows of tiles, [*from, *to). */
static void find_early(const winograd_job *job, int64_t *from, int64_t *to)
{
    const tess_op *op = job->op;
    const tess_op_arrival *late = &job->buffers->arrival;
    const int64_t side = job->kernels->side, pad = op->pad_before[TESS_HEIGHT],
                  above = late->before ? tess_ceil_div(late->before + pad, side) : 0,
                  end = op->in[0].h - late->after - 2 +
                        pad, /* the first output row that reads late rows below */
        below = late->after ? tess_max_i64(end, 0) / side : job->tiles_y;
    *from = tess_min_i64(above, job->tiles_y) * job->tiles_x;
    *to = tess_max_i64(tess_min_i64(below, job->tiles_y) * job->tiles_x, *from);
}

/* Early tiles, then the wait, then the others; the wait first where this takes more groups that transform all weights. */
static void run_around_wait(const tess_cpu *cpu, winograd_job *job)
{
    int64_t from, to;
    const tess_op_arrival *late = &job->buffers->arrival;
    find_early(job, &from, &to);
    const int64_t group = job->group, early = to - from, rest = job->tiles - early;
    if (job->in_parts &&
        tess_ceil_div(early, group) + tess_ceil_div(rest, group) > tess_ceil_div(job->tiles, group))
        from = to = 0;
    if (to > from)
        run_range(cpu, job, (tile_range){from, to - from, to - from, 0});
    late->wait(late->user);
    run_range(cpu, job, (tile_range){0, job->tiles - (to - from), from, to - from});
}

static void winograd_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                         tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    winograd_job job = job_of(cpu, op);
    job.buffers = buffers;
    job.u = buffers->workspace;
    job.zeros = job.u + job.weight_bytes;
    job.scratch = job.zeros + job.zero_bytes;
    memset(job.zeros, 0, job.zero_bytes);
    if (!job.in_parts)
        tess_pool_run(cpu->pool, job.blocks, weights_item, &job);
    if (buffers->arrival.wait)
        run_around_wait(cpu, &job);
    else
        run_range(cpu, &job, (tile_range){0, job.tiles, job.tiles, 0});
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    if (op->kind != TESS_OP_CONV || !cpu->f32)
        return tess_kernel_refuse(why, NULL);
    TESS_TRY(tess_cpu_refuses_layer(device, op, why));
    const bool bf16 = tess_op_precision(op) == TESS_BF16, same = op->in[0].dtype == op->out[0].dtype;
    const tess_winograd_kernels *kernels = bf16 ? cpu->bf16->winograd : &cpu->f32->winograd;
    const bool square = op->kernel[TESS_HEIGHT] == 3 && op->kernel[TESS_WIDTH] == 3 &&
                        op->stride[TESS_HEIGHT] == 1 && op->stride[TESS_WIDTH] == 1;
    if (!square || !same || !kernels || op->in[0].c % kernels->block || op->out[0].c % kernels->block ||
        tess_min_i64(op->in[0].c, op->out[0].c) < NARROWEST)
        return tess_kernel_refuse(why, "Winograd's kernels take 3x3 with stride 1 and blocks of channels");
    return TESS_OK;
}

const tess_kernel tess_cpu_winograd = {.name = "winograd",
                                       .refuses = refuses,
                                       .needs = winograd_needs,
                                       .pack = winograd_pack,
                                       .run = winograd_run};
