/* Group norm in two passes over memory. The first pass sums values and squares of every channel. The rows of
 * an image are divided into parts, whose number does not depend on the threads, and a part into short runs of
 * pixels. A run is summed in fp32 relative to its first pixel, so that neither a large mean nor an outlier
 * costs precision; runs and parts are summed in fp64. Then mean, variance, parameters, scale and shift of a
 * channel are combined into three numbers, and the second pass computes out = activation((in - centre) *
 * factor + offset). */
#include "cpu/norm/group_norm.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "cpu/core/activation.h"

enum { LANES = 8, RUN = 32, MOST_PARTS = 64 };

typedef struct norm_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    int64_t rows, parts; /* per image */
    double *sums;        /* [n][part][value, square][c] */
    float *table;        /* [n][centre, factor, offset][c] */
} norm_job;

static norm_job job_of(const tess_op *op, const tess_op_buffers *buffers)
{
    norm_job job = {.op = op, .buffers = buffers, .rows = op->in[0].d * op->in[0].h};
    job.parts = tess_min_i64(job.rows, MOST_PARTS);
    if (buffers) {
        job.sums = buffers->workspace;
        job.table = (float *)(job.sums + op->in[0].n * job.parts * 2 * op->in[0].c);
    }
    return job;
}

size_t tess_cpu_group_norm_weights(const tess_op *op)
{
    return 2 * (size_t)op->in[0].c * sizeof(float);
}

static void norm_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    const norm_job job = job_of(op, NULL);
    const size_t channels = (size_t)(op->in[0].n * op->in[0].c);
    *needs = (tess_op_needs){.block = 1, .weights = tess_cpu_group_norm_weights(op)};
    needs->workspace = channels * ((size_t)job.parts * 2 * sizeof(double) + 3 * sizeof(float));
}

void tess_cpu_group_norm_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                              const float *values, void *packed)
{
    (void)device;
    float *to = (float *)packed + (param == TESS_PARAM_BIAS ? op->in[0].c : 0) + first;
    memcpy(to, values, (size_t)count * sizeof(float));
}

static inline float value_at(const void *data, int64_t at, bool half)
{
    return half ? tess_bf16_to_float(((const uint16_t *)data)[at]) : ((const float *)data)[at];
}

static float value_of(const tess_tensor *t, const void *data, int64_t at)
{
    return value_at(data, at, t->dtype == TESS_BF16);
}

/* Adds `lanes` channels of a run of at most RUN pixels to the sums of the part. */
static inline __attribute__((always_inline)) void sum_lanes(const void *data, int64_t at, int64_t stride,
                                                            int64_t pixels, int lanes, bool half,
                                                            double *values, double *squares)
{
    float first[LANES] = {0}, value[LANES] = {0}, square[LANES] = {0};
    for (int i = 0; i < lanes; i++)
        first[i] = value_at(data, at + i, half);
    for (int64_t x = 1; x < pixels; x++)
        for (int i = 0; i < lanes; i++) {
            const float v = value_at(data, at + x * stride + i, half) - first[i];
            value[i] += v;
            square[i] += v * v;
        }
    for (int i = 0; i < lanes; i++) {
        const double f = (double)first[i], v = (double)value[i], all = (double)pixels * f;
        values[i] += v + all;
        squares[i] += (double)square[i] + f * (2 * v + all);
    }
}

static inline __attribute__((always_inline)) void sum_run(const norm_job *job, int64_t at, int64_t pixels,
                                                          bool half, double *sums)
{
    const tess_tensor *in = &job->op->in[0];
    const void *data = job->buffers->in[0];
    int64_t c = 0;
    for (; c + LANES <= in->c; c += LANES)
        sum_lanes(data, at + c, in->stride_w, pixels, LANES, half, sums + c, sums + in->c + c);
    for (; c < in->c; c++)
        sum_lanes(data, at + c, in->stride_w, pixels, 1, half, sums + c, sums + in->c + c);
}

static int64_t row_at(const tess_tensor *t, int64_t n, int64_t row)
{
    return n * t->stride_n + row / t->h * t->stride_d + row % t->h * t->stride_h;
}

/* An item is a part of an image. */
static void sum_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const norm_job *job = arg;
    const tess_tensor *in = &job->op->in[0];
    const int64_t n = item / job->parts, part = item % job->parts;
    double *sums = job->sums + item * 2 * in->c;
    for (int64_t c = 0; c < 2 * in->c; c++)
        sums[c] = 0;
    for (int64_t row = part * job->rows / job->parts; row < (part + 1) * job->rows / job->parts; row++)
        for (int64_t x = 0; x < in->w; x += RUN) {
            const int64_t at = row_at(in, n, row) + x * in->stride_w, pixels = tess_min_i64(RUN, in->w - x);
            if (in->dtype == TESS_BF16)
                sum_run(job, at, pixels, true, sums);
            else
                sum_run(job, at, pixels, false, sums);
        }
}

/* Sets the three numbers of a channel, with scale and shift included. */
static void set_channel(const norm_job *job, int64_t n, int64_t c, double mean, double deviation)
{
    const int64_t channels = job->op->in[0].c;
    const float *weights = job->buffers->weights;
    float *table = job->table + n * 3 * channels;
    double factor = weights[c] / deviation, offset = weights[channels + c];
    if (job->op->inputs > 1) {
        const tess_tensor *more = &job->op->in[1];
        const double scale = 1 + (double)value_of(more, job->buffers->in[1], n * more->stride_n + c);
        factor *= scale;
        offset =
            offset * scale + (double)value_of(more, job->buffers->in[1], n * more->stride_n + channels + c);
    }
    table[c] = (float)mean;
    table[channels + c] = (float)factor;
    table[2 * channels + c] = (float)(offset + ((double)table[c] - mean) * factor);
}

/* An item is a group of an image. */
static void table_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const norm_job *job = arg;
    const tess_tensor *in = &job->op->in[0];
    const int64_t groups = job->op->group_norm.groups, width = in->c / groups, n = item / groups,
                  first = item % groups * width;
    double value = 0, square = 0;
    for (int64_t part = 0; part < job->parts; part++) {
        const double *sums = job->sums + (n * job->parts + part) * 2 * in->c;
        for (int64_t c = first; c < first + width; c++) {
            value += sums[c];
            square += sums[in->c + c];
        }
    }
    const double count = (double)job->rows * (double)in->w * (double)width, mean = value / count,
                 variance = square / count - mean * mean;
    const double deviation = sqrt((variance < 0 ? 0 : variance) + job->op->group_norm.epsilon);
    for (int64_t c = first; c < first + width; c++)
        set_channel(job, n, c, mean, deviation);
}

static void apply_pixel(const norm_job *job, int64_t n, int64_t from, int64_t to)
{
    const tess_op *op = job->op;
    const int64_t channels = op->in[0].c;
    const float *centre = job->table + n * 3 * channels, *factor = centre + channels,
                *offset = factor + channels;
    float values[TESS_CPU_FEW];
    for (int64_t c = 0; c < channels; c += TESS_CPU_FEW) {
        const int64_t count = tess_min_i64(TESS_CPU_FEW, channels - c);
        tess_cpu_load(op->in[0].dtype, job->buffers->in[0], from + c, count, values);
        for (int64_t i = 0; i < count; i++)
            values[i] = (values[i] - centre[c + i]) * factor[c + i] + offset[c + i];
        tess_cpu_activate(op->activation, values, count);
        tess_cpu_store(op->out[0].dtype, job->buffers->out[0], to + c, count, values);
    }
}

/* An item is a row. */
static void apply_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const norm_job *job = arg;
    const tess_tensor *in = &job->op->in[0], *out = &job->op->out[0];
    const int64_t n = item / job->rows, row = item % job->rows;
    for (int64_t x = 0; x < in->w; x++)
        apply_pixel(job, n, row_at(in, n, row) + x * in->stride_w, row_at(out, n, row) + x * out->stride_w);
}

static void norm_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    tess_pool *pool = tess_cpu_of(device)->pool;
    norm_job job = job_of(op, buffers);
    tess_pool_run(pool, op->in[0].n * job.parts, sum_item, &job);
    tess_pool_run(pool, op->in[0].n * op->group_norm.groups, table_item, &job);
    tess_pool_run(pool, op->in[0].n * job.rows, apply_item, &job);
}

static bool is_value(const tess_tensor *t)
{
    return t->dtype == TESS_F32 || t->dtype == TESS_BF16;
}

tess_status tess_cpu_group_norm_refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind != TESS_OP_GROUP_NORM)
        return tess_kernel_refuse(why, NULL);
    if (!is_value(&op->in[0]) || !is_value(&op->out[0]) || (op->inputs > 1 && !is_value(&op->in[1])))
        return tess_kernel_refuse(why, "the CPU computes in fp32 or bf16; use `precision` fp32");
    return TESS_OK;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_of(device)->f32 ? tess_cpu_group_norm_refuses(device, op, why)
                                    : tess_kernel_refuse(why, NULL);
}

const tess_kernel tess_cpu_group_norm = {.name = "group norm",
                                         .refuses = refuses,
                                         .needs = norm_needs,
                                         .pack = tess_cpu_group_norm_pack,
                                         .run = norm_run};
