/* Winograd convolution: a thread transforms, multiplies and inverts a group of output blocks in its own
 * scratch, so that only input and output use the arena. The weights are transformed at each run into a scratch
 * that all layers share: stored, they would take four times the size of the file. Where only a few groups would read
 * them, as in the deep layers of a thin strip, writing all of them to memory and reading them back takes longer than
 * the products. There each thread transforms the weights of a few output channels at a time, into a part of that
 * scratch that stays in its cache. Where rows of a neighbour are still on their way, the tiles that read none of them come first. */
#include <string.h>

#include "base/checked.h"
#include "base/help.h"
#include "cpu/conv/winograd_impl.h"

enum { NARROWEST = 16 }; /* with fewer channels the transforms cost more than they save */

static void winograd_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const tess_cpu *cpu = tess_cpu_of(device);
    winograd_job job = tess_winograd_job(cpu, op);
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
    winograd_job job = tess_winograd_job(cpu, op);
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

static void weights_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const winograd_job *job = arg;
    job->kernels->weights(job->buffers->weights, job->u, tess_winograd_u_step(job, job->blocks), job->cin,
                          item * job->cin, (item + 1) * job->cin);
}

static void group_item(void *arg, int64_t item, int thread)
{
    const winograd_job *job = arg;
    const tile_group g = tess_winograd_group(job, item, thread);
    tess_winograd_transform(job, &g);
    for (int64_t channel = 0; channel < job->op->out[0].c; channel += job->chunk)
        tess_winograd_chunk(job, &g, channel, thread);
}

static void run_range(const tess_cpu *cpu, winograd_job *job, tile_range range)
{
    job->range = range;
    if (tess_winograd_helped(cpu, job))
        return;
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
    tess_help_keep(cpu->device.help, (size_t)((job->in_parts ? job->u : job->zeros) - job->u));
    late->wait(late->user);
    tess_help_keep(cpu->device.help, 0);
    memset(job->zeros, 0, job->zero_bytes);
    run_range(cpu, job, (tile_range){0, job->tiles - (to - from), from, to - from});
}

static void winograd_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                         tess_stream *stream)
{
    (void)state, (void)stream;
    const tess_cpu *cpu = tess_cpu_of(device);
    winograd_job job = tess_winograd_job(cpu, op);
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
