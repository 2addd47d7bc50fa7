/* The ops of a diffusion sampler's step (tess_op_diffuse). Every value is computed alone, in fp64 and without contraction, so
 * that threads, batches and devices give the same bits; the network costs a thousand times more. The reference and every
 * instruction set share this code. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

enum { PIECE = 64 }; /* random numbers at a time */

typedef struct diffuse_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
} diffuse_job;

/* The tensors at one pixel. */
typedef struct place {
    const float *e, *known;
    float *y, *previous;
} place;

static double term(double factor, const float *value)
{
    return factor != 0 ? factor * (double)*value : 0;
}

static void diffuse_pixel(const double *k, place at, float z)
{
    const double clean = term(k[TESS_DIFFUSE_Y], at.y) + term(k[TESS_DIFFUSE_E], at.e);
    double limited = clean < k[TESS_DIFFUSE_LOW] ? k[TESS_DIFFUSE_LOW] : clean;
    limited = limited > k[TESS_DIFFUSE_HIGH] ? k[TESS_DIFFUSE_HIGH] : limited;
    const float x0 = fabs(clean) <= DBL_MAX ? (float)limited : NAN;
    const float next = (float)(((term(k[TESS_DIFFUSE_CLEAN], &x0) + term(k[TESS_DIFFUSE_KEEP], at.y)) +
                                term(k[TESS_DIFFUSE_PREVIOUS], at.previous)) +
                               term(k[TESS_DIFFUSE_NOISE], &z));
    const double m = at.known[1];
    *at.previous = x0;
    /* Known pixels keep their bits; nothing is multiplied by zero, since 0 * NaN is NaN. */
    if (k[TESS_DIFFUSE_OPEN] != 0 || m >= 1)
        *at.y = next;
    else if (m <= 0)
        *at.y = at.known[0];
    else
        *at.y = (float)((double)at.known[0] * (1 - m) + m * (double)next);
}

/* An item is a line. */
static void diffuse_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const diffuse_job *job = arg;
    const tess_op *op = job->op;
    const tess_tensor *e = &op->in[0], *known = &op->in[1], *y = &op->out[0], *previous = &op->out[1];
    const double *k = job->buffers->in[2];
    const int64_t *item = (const int64_t *)job->buffers->in[3] + line / y->h * op->in[3].stride_n;
    const int64_t first = (item[1] + line % y->h) * item[3] + item[2];
    const tess_rng_key key = {op->diffuse.seed, (uint32_t)item[0], (uint32_t)(int64_t)k[TESS_DIFFUSE_STEP]};
    place at = {(const float *)job->buffers->in[0] + tess_cpu_line(e, line),
                (const float *)job->buffers->in[1] + tess_cpu_line(known, line),
                (float *)job->buffers->out[0] + tess_cpu_line(y, line),
                (float *)job->buffers->out[1] + tess_cpu_line(previous, line)};
    float normal[PIECE] = {0};
    for (int64_t x = 0; x < y->w; x += PIECE) {
        const int64_t count = tess_min_i64(PIECE, y->w - x);
        if (k[TESS_DIFFUSE_NOISE] != 0)
            tess_rng_normal(key, first + x, count, normal);
        for (int64_t i = 0; i < count; i++) {
            diffuse_pixel(k, at, item[4] ? -normal[i] : normal[i]);
            at.e += e->stride_w, at.known += known->stride_w;
            at.y += y->stride_w, at.previous += previous->stride_w;
        }
    }
}

static void select_row(const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_tensor *table = &op->in[0], *out = &op->out[0];
    const int64_t number = *(const int64_t *)buffers->in[1],
                  row = tess_max_i64(0, tess_min_i64(number, table->n - 1));
    const size_t value = tess_dtype_size(table->dtype), bytes = (size_t)table->c * value;
    for (int64_t n = 0; n < out->n; n++)
        memcpy((char *)buffers->out[0] + (size_t)(n * out->stride_n) * value,
               (const char *)buffers->in[0] + (size_t)row * bytes, bytes);
}

static void diffuse_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                        tess_stream *stream)
{
    (void)state, (void)stream;
    diffuse_job job = {op, buffers};
    if (op->kind == TESS_OP_SELECT) {
        select_row(op, buffers);
        return;
    }
    tess_pool_run(tess_cpu_of(device)->pool, tess_cpu_lines(&op->out[0]), diffuse_item, &job);
    ++*(int64_t *)buffers->out[2];
}

static tess_status refuses_select(const tess_op *op, tess_error *why)
{
    const tess_tensor *table = &op->in[0], *out = &op->out[0];
    if ((table->dtype != TESS_F32 && table->dtype != TESS_F64) || out->dtype != table->dtype ||
        !tess_cpu_is_vector(table, table->dtype, table->n * table->c) ||
        !tess_cpu_is_vector(&op->in[1], TESS_I64, 1))
        return tess_kernel_refuse(why, "a selection takes a dense table of fp32 or fp64 rows and one I64");
    return TESS_OK;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind == TESS_OP_SELECT)
        return refuses_select(op, why);
    if (op->kind != TESS_OP_DIFFUSE)
        return tess_kernel_refuse(why, NULL);
    if (op->outputs != 3 || op->in[0].dtype != TESS_F32 || op->in[1].dtype != TESS_F32 ||
        op->out[0].dtype != TESS_F32 || op->out[1].dtype != TESS_F32 ||
        !tess_cpu_same_sizes(&op->in[0], &op->out[0]) || !tess_cpu_same_sizes(&op->in[0], &op->out[1]))
        return tess_kernel_refuse(why, "a diffusion step takes fp32 images of one channel and one size");
    const tess_tensor items = tess_tensor_2d(TESS_I64, op->out[0].n, 1, 1, TESS_DIFFUSE_ITEMS);
    if (!tess_cpu_is_vector(&op->in[2], TESS_F64, TESS_DIFFUSE_CONTROLS) || op->in[3].dtype != TESS_I64 ||
        !tess_cpu_same_sizes(&op->in[3], &items) || !tess_cpu_is_vector(&op->out[2], TESS_I64, 1))
        return tess_kernel_refuse(why, "a diffusion step takes a row of fp64 factors and five I64 an image");
    return TESS_OK;
}

const tess_kernel tess_cpu_diffuse = {.name = "diffuse", .refuses = refuses, .run = diffuse_run};
