/* Dropout and noise by counter (base/rng.h): each value's random number depends on seed, item, step and its place in
 * the image, so that neither threads nor batches change a result. The reference and every instruction set share
 * this code. */
#include "base/checked.h"
#include "base/rng.h"
#include "cpu/core/activation.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

typedef struct random_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
} random_job;

/* The number of a line's first value within its image. */
static int64_t first_of(const tess_tensor *t, int64_t line)
{
    return line % (t->d * t->h) * t->w * t->c;
}

/* An item is a line. */
static void dropout_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const random_job *job = arg;
    const tess_tensor *in = &job->op->in[0], *out = &job->op->out[0];
    const int64_t *image =
        (const int64_t *)job->buffers->in[1] + line / (in->d * in->h) * job->op->in[1].stride_n;
    const tess_rng_key key = {job->op->random.seed, (uint32_t)image[0], (uint32_t)image[1]};
    const float rate = (float)job->op->random.rate, rest = (float)(1 - job->op->random.rate);
    const tess_cpu_runs runs = tess_cpu_runs_of(in, out, 1);
    float values[TESS_CPU_FEW], uniform[TESS_CPU_FEW];
    for (int64_t x = 0; x < runs.runs; x++)
        for (int64_t c = 0; c < runs.length; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, runs.length - c);
            tess_cpu_load(in->dtype, job->buffers->in[0], tess_cpu_line(in, line) + x * in->stride_w + c,
                          count, values);
            tess_rng_uniform(key, first_of(in, line) + x * runs.length + c, count, uniform);
            for (int64_t i = 0; i < count; i++)
                values[i] = uniform[i] < rate ? 0 : values[i] / rest;
            tess_cpu_store(out->dtype, job->buffers->out[0], tess_cpu_line(out, line) + x * out->stride_w + c,
                           count, values);
        }
}

/* An item is a line. A channel of the output that the input lacks holds the deviation. */
static void noise_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const random_job *job = arg;
    const tess_tensor *in = &job->op->in[0], *out = &job->op->out[0];
    const double *image =
        (const double *)job->buffers->in[1] + line / (in->d * in->h) * job->op->in[1].stride_n;
    const float scale = (float)image[0], deviation = (float)image[1];
    const tess_rng_key key = {job->op->random.seed, (uint32_t)(int64_t)image[2], (uint32_t)(int64_t)image[3]};
    const bool level = out->c > in->c;
    const tess_cpu_runs runs = level ? (tess_cpu_runs){in->w, in->c} : tess_cpu_runs_of(in, out, 1);
    float values[TESS_CPU_FEW], normal[TESS_CPU_FEW];
    for (int64_t x = 0; x < runs.runs; x++) {
        const int64_t to = tess_cpu_line(out, line) + x * out->stride_w;
        for (int64_t c = 0; c < runs.length; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, runs.length - c);
            tess_cpu_load(in->dtype, job->buffers->in[0], tess_cpu_line(in, line) + x * in->stride_w + c,
                          count, values);
            tess_rng_normal(key, first_of(in, line) + x * runs.length + c, count, normal);
            for (int64_t i = 0; i < count; i++)
                values[i] = scale * values[i] + deviation * normal[i];
            tess_cpu_store(out->dtype, job->buffers->out[0], to + c, count, values);
        }
        if (level)
            tess_cpu_store(out->dtype, job->buffers->out[0], to + in->c, 1, &deviation);
    }
}

static void random_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                       tess_stream *stream)
{
    (void)state, (void)stream;
    random_job job = {op, buffers};
    tess_pool_run(tess_cpu_of(device)->pool, tess_cpu_lines(&op->in[0]),
                  op->kind == TESS_OP_DROPOUT ? dropout_item : noise_item, &job);
}

/* A vector of `count` values for each image. */
static bool is_table(const tess_op *op, tess_dtype dtype, int64_t count)
{
    const tess_tensor *t = &op->in[1], vector = tess_tensor_2d(dtype, op->in[0].n, 1, 1, count);
    return t->dtype == dtype && tess_cpu_same_sizes(t, &vector);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    const tess_tensor *in = &op->in[0], *out = &op->out[0];
    if (op->kind != TESS_OP_DROPOUT && op->kind != TESS_OP_NOISE)
        return tess_kernel_refuse(why, NULL);
    if (!tess_cpu_is_value(in) || !tess_cpu_is_value(out))
        return tess_kernel_refuse(why, "the CPU computes in fp32 or bf16; use `precision` fp32");
    tess_tensor wide = *in;
    wide.c++;
    if (op->kind == TESS_OP_NOISE) {
        if (!is_table(op, TESS_F64, 4) || (!tess_cpu_same_sizes(in, out) && !tess_cpu_same_sizes(&wide, out)))
            return tess_kernel_refuse(why,
                                      "noise takes four fp64 values an image, and adds at most one channel");
    } else if (!is_table(op, TESS_I64, 2) || !tess_cpu_same_sizes(in, out) || !(op->random.rate >= 0) ||
               !(op->random.rate < 1)) {
        return tess_kernel_refuse(why,
                                  "dropout takes item and step of each image, and a rate from 0 to below 1");
    }
    return TESS_OK;
}

const tess_kernel tess_cpu_random = {.name = "random", .refuses = refuses, .run = random_run};
