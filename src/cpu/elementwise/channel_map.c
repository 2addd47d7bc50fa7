/* CHANNEL_MAP and its gradient. The parameters of a channel become a factor and a centre first, in fp64; then a value takes
 * one product. Values are visited a few at a time: whole pixels if they are small, so that a table of as many values fits all
 * of them. The sums of the gradient are fp64, in blocks of lines that the size alone sets. Used as the reference too. */
#include "cpu/elementwise/channels.h"

#include <math.h>

#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/core/lines.h"

enum { MOST_BLOCKS = 64 };

double tess_cpu_temperature(const tess_op_softmax *s, const double *control)
{
    return fmax(s->least, s->start * pow(s->decay, control[TESS_CONTROL_EPOCH]));
}

void tess_cpu_softmax(const float *values, int64_t count, double temperature, double *shares)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < count; i++)
        most = (double)values[i] > most ? (double)values[i] : most;
    for (int64_t i = 0; i < count; i++)
        sum += shares[i] = exp(((double)values[i] - most) / temperature);
    for (int64_t i = 0; i < count; i++)
        shares[i] /= sum;
}

typedef struct map_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    bool boundary;
    double *factor, *centre; /* of each channel; BOUNDARY: 1 / epsilon, R^2 */
    double *sums;            /* [block][2][channels] */
    int64_t blocks;
} map_job;

static double radius_of(double value)
{
    return (fmax(10 * value, 0) + log1p(exp(-fabs(10 * value)))) / 10;
}

/* Factor and centre of every channel. */
static void make_table(const map_job *job, const float *params, const double *control)
{
    const tess_op_channel_map *map = &job->op->channel_map;
    const int64_t c = job->op->out[0].c;
    if (map->form == TESS_CHANNEL_SOFTMAX)
        tess_cpu_softmax(params, c, tess_cpu_temperature(&map->softmax, control), job->factor);
    for (int64_t i = 0; i < c; i++) {
        const double p = (double)params[i];
        switch (map->form) {
        case TESS_CHANNEL_SHIFT:
            job->factor[i] = 1, job->centre[i] = p;
            break;
        case TESS_CHANNEL_SCALE:
            job->factor[i] = p, job->centre[i] = (double)params[c + i];
            break;
        case TESS_CHANNEL_DIVIDE:
            job->factor[i] = 1 / (p + map->epsilon), job->centre[i] = (double)params[c + i];
            break;
        case TESS_CHANNEL_SOFTMAX:
            job->factor[i] *= map->softmax.count, job->centre[i] = 0;
            break;
        case TESS_CHANNEL_BOUNDARY:
            job->factor[i] = 1 / map->epsilon, job->centre[i] = radius_of(p) * radius_of(p);
            break;
        }
    }
}

/* The steps of a line: `step` values at a time, which begin at a channel that is a multiple of it or at channel 0. */
typedef struct walk {
    int64_t runs, length, step;
} walk;

static walk walk_of(const tess_tensor *tensors, const tess_tensor *more, int count)
{
    const tess_cpu_runs runs = tess_cpu_runs_of(tensors, more, count);
    const int64_t c = more->c, whole = c <= TESS_CPU_FEW ? TESS_CPU_FEW / c * c : 0;
    if (whole)
        return (walk){runs.runs, runs.length, whole};
    return (walk){more->w, c, TESS_CPU_FEW}; /* pixel by pixel */
}

static void few_of(const map_job *job, int64_t first, int64_t count, float *factor, float *centre)
{
    const int64_t c = job->op->out[0].c;
    for (int64_t i = 0; i < count; i++) {
        factor[i] = (float)job->factor[(first + i) % c];
        centre[i] = (float)job->centre[(first + i) % c];
    }
}

static void map_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const map_job *job = arg;
    const tess_tensor *in = &job->op->in[0], *out = &job->op->out[0];
    const walk w = walk_of(in, out, 1);
    float values[TESS_CPU_FEW], factor[TESS_CPU_FEW], centre[TESS_CPU_FEW];
    few_of(job, 0, w.step, factor, centre);
    for (int64_t x = 0; x < w.runs; x++)
        for (int64_t i = 0; i < w.length; i += w.step) {
            const int64_t count = tess_min_i64(w.step, w.length - i);
            if (out->c > TESS_CPU_FEW)
                few_of(job, i, count, factor, centre);
            tess_cpu_load(in->dtype, job->buffers->in[0], tess_cpu_line(in, line) + x * in->stride_w + i,
                          count, values);
            if (job->boundary)
                for (int64_t k = 0; k < count; k++)
                    values[k] = centre[k] +
                                factor[k] * tess_cpu_select(values[k] <= centre[k], 0, values[k] - centre[k]);
            else
                for (int64_t k = 0; k < count; k++)
                    values[k] = factor[k] * (values[k] - centre[k]);
            tess_cpu_store(out->dtype, job->buffers->out[0], tess_cpu_line(out, line) + x * out->stride_w + i,
                           count, values);
        }
}

/* Adds g u and g of some values, and writes g times the slope. */
static void few_gradients(const map_job *job, const float *factor, const double *centre, const float *x,
                          float *g, int64_t count, double *with, double *alone)
{
    for (int64_t k = 0; k < count; k++) {
        const bool inside = job->boundary && !((double)x[k] > centre[k]);
        const double u = job->boundary ? (inside ? 0 : 1) : (double)x[k] - centre[k];
        with[k] += (double)g[k] * u;
        alone[k] += (double)g[k];
        g[k] = inside ? 0 : g[k] * factor[k];
    }
}

static void grad_item(void *arg, int64_t block, int thread)
{
    (void)thread;
    const map_job *job = arg;
    const tess_tensor *g = &job->op->in[0], *in = &job->op->in[1], *out = &job->op->out[0];
    const tess_tensor both[2] = {*g, *in};
    const int64_t lines = tess_cpu_lines(out), c = out->c;
    const walk w = walk_of(both, out, 2);
    double *sums = job->sums + block * 2 * c, with[TESS_CPU_FEW], alone[TESS_CPU_FEW], middle[TESS_CPU_FEW];
    float slopes[TESS_CPU_FEW], values[TESS_CPU_FEW], factor[TESS_CPU_FEW], centre[TESS_CPU_FEW];
    for (int64_t i = 0; i < 2 * c; i++)
        sums[i] = 0;
    for (int64_t start = 0; start < (c > TESS_CPU_FEW ? c : 1); start += w.step) {
        few_of(job, start, w.step, factor, centre);
        for (int64_t k = 0; k < w.step; k++) {
            middle[k] = job->centre[(start + k) % c];
            with[k] = alone[k] = 0;
        }
        for (int64_t line = block * lines / job->blocks; line < (block + 1) * lines / job->blocks; line++)
            for (int64_t x = 0; x < w.runs; x++)
                for (int64_t i = start; i < (c > TESS_CPU_FEW ? start + 1 : w.length); i += w.step) {
                    const int64_t count = tess_min_i64(w.step, w.length - i);
                    tess_cpu_load(g->dtype, job->buffers->in[0], tess_cpu_line(g, line) + x * g->stride_w + i,
                                  count, slopes);
                    tess_cpu_load(in->dtype, job->buffers->in[1],
                                  tess_cpu_line(in, line) + x * in->stride_w + i, count, values);
                    few_gradients(job, factor, middle, values, slopes, count, with, alone);
                    tess_cpu_store(out->dtype, job->buffers->out[0],
                                   tess_cpu_line(out, line) + x * out->stride_w + i, count, slopes);
                }
        for (int64_t k = 0; k < w.step && start + k < (c > TESS_CPU_FEW ? c : w.step); k++) {
            sums[(start + k) % c] += with[k];
            sums[c + (start + k) % c] += alone[k];
        }
    }
}

/* Gradients of the parameters from the sums of g u and g. */
static void add_gradients(const map_job *job, const float *params, const double *control)
{
    const tess_op_channel_map *map = &job->op->channel_map;
    const int64_t c = job->op->out[0].c;
    const double *with = job->sums, *alone = with + c;
    float *out = job->buffers->out[1];
    const bool softmax = map->form == TESS_CHANNEL_SOFTMAX;
    const double temperature = softmax ? tess_cpu_temperature(&map->softmax, control) : 1;
    double mean = 0; /* SOFTMAX: factor is count * share */
    for (int64_t i = 0; i < c && softmax; i++)
        mean += job->factor[i] / map->softmax.count * with[i];
    for (int64_t i = 0; i < c; i++) {
        const double p = (double)params[i], f = job->factor[i];
        double weight = 0, bias = -f * alone[i];
        switch (map->form) {
        case TESS_CHANNEL_SHIFT:
            weight = -alone[i];
            break;
        case TESS_CHANNEL_SCALE:
            weight = with[i];
            break;
        case TESS_CHANNEL_DIVIDE:
            weight = -with[i] * f * f;
            break;
        case TESS_CHANNEL_SOFTMAX:
            weight = f / temperature * (with[i] - mean);
            break;
        case TESS_CHANNEL_BOUNDARY:
            weight = 2 * radius_of(p) / (1 + exp(-10 * p)) * (alone[i] - f * with[i]);
            break;
        }
        out[i] = (float)(weight + (map->accumulate ? (double)out[i] : 0));
        if (tess_channel_has_bias(map->form))
            out[c + i] = (float)(bias + (map->accumulate ? (double)out[c + i] : 0));
    }
}

static bool is_grad(const tess_op *op)
{
    return op->kind == TESS_OP_CHANNEL_MAP_GRAD;
}

static int64_t blocks_of(const tess_op *op)
{
    return is_grad(op) ? tess_min_i64(MOST_BLOCKS, tess_max_i64(1, tess_cpu_lines(&op->out[0]))) : 0;
}

static int64_t parameters_of(const tess_op *op)
{
    return op->out[0].c * (tess_channel_has_bias(op->channel_map.form) ? 2 : 1);
}

static void map_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs = (tess_op_needs){.block = 1,
                             .weights = is_grad(op) ? 0 : (size_t)parameters_of(op) * sizeof(float),
                             .workspace = (size_t)(2 * op->out[0].c * (1 + blocks_of(op))) * sizeof(double)};
}

static void map_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                     const float *values, void *packed)
{
    (void)device;
    float *to = (float *)packed + (param == TESS_PARAM_BIAS ? op->in[0].c : 0) + first;
    for (int64_t i = 0; i < count; i++)
        to[i] = values[i];
}

static void map_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                    tess_stream *stream)
{
    (void)state, (void)stream;
    tess_pool *pool = tess_cpu_of(device)->pool;
    const int64_t c = op->out[0].c;
    map_job job = {.op = op,
                   .buffers = buffers,
                   .boundary = op->channel_map.form == TESS_CHANNEL_BOUNDARY,
                   .factor = buffers->workspace,
                   .blocks = blocks_of(op)};
    job.centre = job.factor + c;
    job.sums = job.centre + c;
    const float *params = is_grad(op) ? buffers->in[2] : buffers->weights;
    const double *control = buffers->in[is_grad(op) ? 3 : 1];
    make_table(&job, params, control);
    if (!is_grad(op)) {
        tess_pool_run(pool, tess_cpu_lines(&op->out[0]), map_item, &job);
        return;
    }
    tess_pool_run(pool, job.blocks, grad_item, &job);
    for (int64_t block = 1; block < job.blocks; block++)
        for (int64_t i = 0; i < 2 * c; i++)
            job.sums[i] += job.sums[block * 2 * c + i];
    if (op->outputs > 1)
        add_gradients(&job, params, control);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    const bool grad = is_grad(op), softmax = op->channel_map.form == TESS_CHANNEL_SOFTMAX;
    if (op->kind != TESS_OP_CHANNEL_MAP && !grad)
        return tess_kernel_refuse(why, NULL);
    const tess_tensor *x = &op->in[grad ? 1 : 0];
    if (!tess_cpu_is_value(&op->in[0]) || !tess_cpu_is_value(x) || !tess_cpu_is_value(&op->out[0]))
        return tess_kernel_refuse(why, "the CPU computes in fp32 or bf16; use `precision` fp32");
    const int inputs = (grad ? 3 : 1) + softmax;
    if (op->inputs != inputs || !tess_cpu_same_sizes(&op->in[0], &op->out[0]) ||
        !tess_cpu_same_sizes(x, &op->out[0]) ||
        (grad && !tess_cpu_is_vector(&op->in[2], TESS_F32, parameters_of(op))) ||
        (op->outputs > 1 && !tess_cpu_is_vector(&op->out[1], TESS_F32, parameters_of(op))) ||
        (softmax && !tess_cpu_is_vector(&op->in[inputs - 1], TESS_F64, TESS_CONTROLS)))
        return tess_kernel_refuse(why,
                                  "a map of channels takes values of one shape, fp32 parameters, and the "
                                  "control vector if it is a softmax");
    return TESS_OK;
}

const tess_kernel tess_cpu_channel_map = {
    .name = "channel map", .refuses = refuses, .needs = map_needs, .pack = map_pack, .run = map_run};
