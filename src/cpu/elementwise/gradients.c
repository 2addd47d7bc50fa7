/* Gradients of the ops of pointwise.c: activations, max-pool, nearest upsampling; and average pooling, which is the
 * gradient of an upsampling times a factor, as its own gradient is an upsampling. They are memory-bound, so plain loops
 * that the compiler vectorises are enough. Values are processed a few channels at a time in buffers on the stack,
 * between load and store. */
#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

typedef struct gradient_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
} gradient_job;

static void load(const gradient_job *job, int input, int64_t at, int64_t count, float *values)
{
    tess_cpu_load(job->op->in[input].dtype, job->buffers->in[input], at, count, values);
}

static void store(const gradient_job *job, int64_t at, int64_t count, const float *values)
{
    tess_cpu_store(job->op->out[0].dtype, job->buffers->out[0], at, count, values);
}

/* An item is a line. */
static void activate_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const gradient_job *job = arg;
    const tess_tensor *in = job->op->in, *out = &job->op->out[0];
    const tess_cpu_runs runs = tess_cpu_runs_of(in, out, 2);
    float gradients[TESS_CPU_FEW], values[TESS_CPU_FEW];
    for (int64_t x = 0; x < runs.runs; x++)
        for (int64_t c = 0; c < runs.length; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, runs.length - c);
            load(job, 0, tess_cpu_line(&in[0], item) + x * in[0].stride_w + c, count, gradients);
            load(job, 1, tess_cpu_line(&in[1], item) + x * in[1].stride_w + c, count, values);
            tess_cpu_activation_grad(job->op->activation, values, gradients, count);
            store(job, tess_cpu_line(out, item) + x * out->stride_w + c, count, gradients);
        }
}

/* One window of a max-pool, of a few channels. */
typedef struct pool_window {
    int64_t from, to, add; /* offsets of its first value in in[1], out and in[2] */
    int rows, columns;     /* fewer than the stride at an edge that no whole window covers */
    int64_t count;         /* of channels */
} pool_window;

/* Finds the first largest value of each channel of the window, as the number of its place. */
static void find_largest(const gradient_job *job, const pool_window *w, int32_t place[TESS_CPU_FEW])
{
    const tess_tensor *in = &job->op->in[1];
    float largest[TESS_CPU_FEW], values[TESS_CPU_FEW];
    for (int p = 0; p < w->rows * w->columns; p++) {
        load(job, 1, w->from + p / w->columns * in->stride_h + p % w->columns * in->stride_w, w->count,
             values);
        for (int64_t i = 0; p == 0 && i < w->count; i++)
            largest[i] = values[i], place[i] = 0;
        for (int64_t i = 0; p > 0 && i < w->count; i++) {
            place[i] = values[i] > largest[i] ? p : place[i];
            largest[i] = values[i] > largest[i] ? values[i] : largest[i];
        }
    }
}

static void spread(const gradient_job *job, const pool_window *w, const int32_t *place,
                   const float *gradients)
{
    const tess_tensor *add = &job->op->in[2], *out = &job->op->out[0];
    float values[TESS_CPU_FEW];
    for (int p = 0; p < w->rows * w->columns; p++) {
        const int y = p / w->columns, x = p % w->columns;
        for (int64_t i = 0; i < w->count; i++)
            values[i] = 0;
        if (job->op->inputs > 2)
            load(job, 2, w->add + y * add->stride_h + x * add->stride_w, w->count, values);
        for (int64_t i = 0; i < w->count; i++)
            values[i] += tess_cpu_select(place[i] == p, gradients[i], 0);
        store(job, w->to + y * out->stride_h + x * out->stride_w, w->count, values);
    }
}

static int64_t pool_rows(const tess_op *op)
{
    return tess_ceil_div(op->out[0].h, op->stride[TESS_HEIGHT]);
}

/* An item is a row of windows. A window is read before it is written, so that out may be any of the inputs of its
 * shape. */
static void pool_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const gradient_job *job = arg;
    const tess_op *op = job->op;
    const tess_tensor *g = &op->in[0], *in = &op->in[1], *add = &op->in[2], *out = &op->out[0];
    const int sy = op->stride[TESS_HEIGHT], sx = op->stride[TESS_WIDTH];
    const int64_t row = item % pool_rows(op), slice = item / pool_rows(op), line = slice * out->h + row * sy;
    float gradients[TESS_CPU_FEW];
    int32_t place[TESS_CPU_FEW];
    for (int64_t x = 0; x * sx < out->w; x++)
        for (int64_t c = 0; c < out->c; c += TESS_CPU_FEW) {
            const pool_window w = {
                .from = tess_cpu_line(in, line) + x * sx * in->stride_w + c,
                .to = tess_cpu_line(out, line) + x * sx * out->stride_w + c,
                .add = op->inputs > 2 ? tess_cpu_line(add, line) + x * sx * add->stride_w + c : 0,
                .rows = (int)tess_min_i64(sy, out->h - row * sy),
                .columns = (int)tess_min_i64(sx, out->w - x * sx),
                .count = tess_min_i64(TESS_CPU_FEW, out->c - c)};
            find_largest(job, &w, place);
            for (int64_t i = 0; i < w.count; i++)
                gradients[i] = 0;
            if (row < g->h && x < g->w)
                load(job, 0, tess_cpu_line(g, slice * g->h + row) + x * g->stride_w + c, w.count, gradients);
            spread(job, &w, place, gradients);
        }
}

/* The share of a value of a window in the mean. */
static float share_of(const tess_op *op)
{
    return 1.0f / (float)(op->stride[TESS_HEIGHT] * op->stride[TESS_WIDTH]);
}

/* Sums windows. An item is a line of the output. */
static void sum_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const gradient_job *job = arg;
    const tess_op *op = job->op;
    const tess_tensor *in = &op->in[0], *add = &op->in[1], *out = &op->out[0];
    const int sy = op->stride[TESS_HEIGHT], sx = op->stride[TESS_WIDTH];
    const int64_t from = tess_cpu_line(in, item / out->h * in->h + item % out->h * sy);
    const float factor = op->kind == TESS_OP_AVERAGE_POOL ? share_of(op) : 1;
    float sum[TESS_CPU_FEW], values[TESS_CPU_FEW];
    for (int64_t x = 0; x < out->w; x++)
        for (int64_t c = 0; c < out->c; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, out->c - c);
            load(job, 0, from + x * sx * in->stride_w + c, count, sum);
            for (int p = 1; p < sy * sx; p++) {
                load(job, 0, from + p / sx * in->stride_h + (x * sx + p % sx) * in->stride_w + c, count,
                     values);
                for (int64_t i = 0; i < count; i++)
                    sum[i] += values[i];
            }
            for (int64_t i = 0; i < count; i++)
                sum[i] *= factor;
            if (op->inputs > 1) {
                load(job, 1, tess_cpu_line(add, item) + x * add->stride_w + c, count, values);
                for (int64_t i = 0; i < count; i++)
                    sum[i] += values[i];
            }
            store(job, tess_cpu_line(out, item) + x * out->stride_w + c, count, sum);
        }
}

/* Gives every value of a window its share. An item is a line of the output. */
static void share_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const gradient_job *job = arg;
    const tess_op *op = job->op;
    const tess_tensor *in = &op->in[0], *add = &op->in[1], *out = &op->out[0];
    const int64_t y = item % out->h / op->stride[TESS_HEIGHT],
                  from = tess_cpu_line(in, item / out->h * in->h + y);
    const float share = share_of(op);
    float sum[TESS_CPU_FEW], values[TESS_CPU_FEW];
    for (int64_t column = 0; column < out->w; column++)
        for (int64_t c = 0; c < out->c; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, out->c - c), x = column / op->stride[TESS_WIDTH];
            for (int64_t i = 0; i < count; i++)
                sum[i] = 0;
            if (y < in->h && x < in->w) /* the last rows and columns may be in no whole window */
                load(job, 0, from + x * in->stride_w + c, count, sum);
            for (int64_t i = 0; i < count; i++)
                sum[i] *= share;
            if (op->inputs > 1) {
                load(job, 1, tess_cpu_line(add, item) + column * add->stride_w + c, count, values);
                for (int64_t i = 0; i < count; i++)
                    sum[i] += values[i];
            }
            store(job, tess_cpu_line(out, item) + column * out->stride_w + c, count, sum);
        }
}

static void gradients_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)state, (void)stream;
    tess_pool *pool = tess_cpu_of(device)->pool;
    gradient_job job = {op, buffers};
    if (op->kind == TESS_OP_ACTIVATE_GRAD)
        tess_pool_run(pool, tess_cpu_lines(&op->out[0]), activate_item, &job);
    else if (op->kind == TESS_OP_POOL_GRAD)
        tess_pool_run(pool, op->out[0].n * op->out[0].d * pool_rows(op), pool_item, &job);
    else
        tess_pool_run(pool, tess_cpu_lines(&op->out[0]),
                      op->kind == TESS_OP_AVERAGE_POOL_GRAD ? share_item : sum_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_gradients_refuses_fast(device, op, tess_cpu_is_pointwise_grad(op), why);
}

const tess_kernel tess_cpu_gradients = {.name = "gradients", .refuses = refuses, .run = gradients_run};
