/* The backward pass of a group norm with scale, shift and activation, in three passes over memory: the statistics again,
 * the sums of the gradients of each channel, the gradients of the values. With x^ = (x - mean) / deviation, g the
 * gradient before the activation, f = weight (1 + scale) of a channel and a group of m values:
 *
 *   gradient of x = (g f - sum(g f) / m - x^ sum(g f x^) / m) / deviation
 *
 * The gradients of weight, bias, scale and shift follow from the sums of g and g x^ of a channel. */
#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/core/lines.h"
#include "cpu/norm/group_norm.h"

typedef struct grad_job {
    tess_group_norm norm;
    const tess_op *op;
    const tess_op_buffers *buffers;
    double *channels; /* [n][sum of g, sum of g x^][c] */
} grad_job;

/* Lays out the workspace; returns its size. */
static size_t divide(const tess_op *op, void *workspace, grad_job *job)
{
    const tess_tensor *in = &op->in[1];
    tess_norm_passes *p = &job->norm.passes;
    tess_norm_divide(p, in, TESS_NORM_PARTS);
    const size_t sums = (size_t)(in->n * p->parts * 2 * in->c), channels = (size_t)(in->n * 2 * in->c),
                 statistics = (size_t)(in->n * op->group_norm.groups * 2),
                 table = (size_t)(in->n * 3 * in->c);
    if (workspace) {
        p->sums = workspace;
        job->channels = p->sums + sums;
        job->norm.statistics = job->channels + channels;
        p->table = (float *)(job->norm.statistics + statistics);
        p->back = p->table + table;
    }
    return (sums + channels + statistics) * sizeof(double) + 2 * table * sizeof(float);
}

static void grad_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    grad_job job = {.op = op};
    *needs = (tess_op_needs){.block = 1, .workspace = divide(op, NULL, &job)};
}

/* The sums of a channel over the parts. */
static void sum_channel(const grad_job *job, int64_t n, int64_t c, double mean, double inverse)
{
    const tess_norm_passes *p = &job->norm.passes;
    const int64_t channels = p->in->c;
    double sum = 0, product = 0;
    for (int64_t part = 0; part < p->parts; part++) {
        const double *sums = p->sums + (n * p->parts + part) * 2 * channels;
        sum += sums[c];
        product += sums[channels + c];
    }
    const double centre = (double)p->table[n * p->step + c]; /* the mean, rounded */
    job->channels[n * 2 * channels + c] = sum;
    job->channels[(n * 2 + 1) * channels + c] = (product + (centre - mean) * sum) * inverse;
}

static void store_scale_shift(const grad_job *job, int64_t n, int64_t c)
{
    const tess_tensor *out = &job->op->out[2];
    const int64_t channels = job->norm.passes.in->c;
    const double sum = job->channels[n * 2 * channels + c],
                 product = job->channels[(n * 2 + 1) * channels + c];
    const float scale = (float)(job->norm.params[c] * product + job->norm.params[channels + c] * sum),
                shift = (float)sum;
    tess_cpu_store(out->dtype, job->buffers->out[2], n * out->stride_n + c, 1, &scale);
    tess_cpu_store(out->dtype, job->buffers->out[2], n * out->stride_n + channels + c, 1, &shift);
}

/* An item is a group of an image. */
static void table_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const grad_job *job = arg;
    const tess_group_norm *norm = &job->norm;
    const tess_norm_passes *p = &norm->passes;
    const int64_t channels = p->in->c, width = channels / norm->groups, n = item / norm->groups,
                  first = item % norm->groups * width;
    const double mean = norm->statistics[2 * item], inverse = norm->statistics[2 * item + 1];
    double sum = 0, product = 0, scale, shift;
    for (int64_t c = first; c < first + width; c++) {
        sum_channel(job, n, c, mean, inverse);
        tess_cpu_scale_shift(norm, n, c, &scale, &shift);
        sum += scale * norm->params[c] * job->channels[n * 2 * channels + c];
        product += scale * norm->params[c] * job->channels[(n * 2 + 1) * channels + c];
        if (norm->more)
            store_scale_shift(job, n, c);
    }
    const double count = (double)p->rows * (double)p->in->w * (double)width;
    for (int64_t c = first; c < first + width; c++) {
        const double centre = (double)p->table[n * p->step + c], slope = -inverse * inverse * product / count;
        float *back = p->back + n * p->step + c;
        tess_cpu_scale_shift(norm, n, c, &scale, &shift);
        back[0] = (float)(inverse * scale * norm->params[c]);
        back[channels] = (float)(-inverse * sum / count + (centre - mean) * slope);
        back[2 * channels] = (float)slope;
    }
}

static void store_params(const grad_job *job)
{
    const int64_t channels = job->norm.passes.in->c;
    float *out = job->buffers->out[1];
    for (int64_t c = 0; c < channels; c++) {
        double weight = 0, bias = 0, scale, shift;
        for (int64_t n = 0; n < job->norm.passes.in->n; n++) {
            tess_cpu_scale_shift(&job->norm, n, c, &scale, &shift);
            weight += scale * job->channels[(n * 2 + 1) * channels + c];
            bias += scale * job->channels[n * 2 * channels + c];
        }
        out[c] = (float)(weight + (job->op->group_norm.accumulate ? (double)out[c] : 0));
        out[channels + c] = (float)(bias + (job->op->group_norm.accumulate ? (double)out[channels + c] : 0));
    }
}

static void grad_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    tess_pool *pool = tess_cpu_of(device)->pool;
    grad_job job = {.op = op,
                    .buffers = buffers,
                    .norm = {.groups = op->group_norm.groups,
                             .epsilon = op->group_norm.epsilon,
                             .params = buffers->in[2],
                             .more = op->inputs > 3 ? &op->in[3] : NULL,
                             .more_data = buffers->in[3]}};
    tess_norm_passes *p = &job.norm.passes;
    divide(op, buffers->workspace, &job);
    p->kernels = tess_cpu_of(device)->f32->norm;
    p->activation = op->activation;
    p->gradient = &op->in[0];
    p->gradient_data = buffers->in[0];
    p->in_data = buffers->in[1];
    p->out = &op->out[0];
    p->out_data = buffers->out[0];
    p->step = 3 * p->in->c;
    tess_cpu_group_norm_table(pool, &job.norm);
    tess_norm_sum_gradients(pool, p);
    tess_pool_run(pool, p->in->n * job.norm.groups, table_item, &job);
    store_params(&job);
    tess_norm_apply_gradients(pool, p);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_gradients_refuses_fast(device, op, op->kind == TESS_OP_GROUP_NORM_GRAD, why);
}

const tess_kernel tess_cpu_group_norm_grad = {
    .name = "group norm gradient", .refuses = refuses, .needs = grad_needs, .run = grad_run};
