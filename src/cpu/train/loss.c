/* Losses and their gradients. The result of a network is small beside its activations, so plain arithmetic in fp64
 * is fast enough, for the reference as well.
 *
 * Lines are divided into blocks by the size alone; each block is summed, then the blocks in their order. The mean of
 * a masked loss is over the mask's weights, which are known only after the first pass: a second pass writes the
 * gradients. IOU sums the intersection in place of the loss and the union in place of the weights. */
#include <math.h>

#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

enum { BLOCK = 1 << 14 }; /* values, about */

typedef struct loss_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    double factor;    /* of the gradients */
    double hit, miss; /* IOU: factors of the slope where the target is 1 and 0 */
} loss_job;

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double weight_of_target(const tess_op_loss *loss, double target)
{
    return loss->positive > 0 ? 1 + (loss->positive - 1) * target : 1;
}

static int64_t lines_a_block(const tess_tensor *t)
{
    return tess_max_i64(1, BLOCK / tess_max_i64(1, t->w * t->c));
}

static int64_t blocks_of(const tess_tensor *t)
{
    return tess_ceil_div(tess_cpu_lines(t), lines_a_block(t));
}

/* A sum of losses and one of weights for each block. */
static void loss_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    *needs = (tess_op_needs){.workspace = (size_t)blocks_of(&op->in[0]) * 2 * sizeof(double), .block = 1};
}

static double loss_of(const tess_op_loss *loss, double prediction, double target)
{
    const double d = prediction - target;
    switch (loss->kind) {
    case TESS_MSE:
    case TESS_MASKED_MSE:
        return d * d;
    case TESS_L1:
        return fabs(d);
    case TESS_CHARBONNIER:
        return sqrt(d * d + loss->epsilon * loss->epsilon);
    case TESS_RMSE: /* loss_rms.c */
    case TESS_PSNR:
        return NAN;
    case TESS_BCE_LOGITS:
        return (1 - target) * prediction +
               weight_of_target(loss, target) *
                   (log1p(exp(-fabs(prediction))) + (prediction < 0 ? -prediction : 0));
    case TESS_MEAN:
        return prediction;
    case TESS_IOU:
        return sigmoid(prediction) * target;
    }
    return NAN;
}

/* NaN stays NaN, so that it is noticed. */
static double derivative_of(const loss_job *job, double prediction, double target)
{
    const tess_op_loss *loss = &job->op->loss;
    const double d = prediction - target;
    switch (loss->kind) {
    case TESS_MSE:
    case TESS_MASKED_MSE:
        return 2 * d;
    case TESS_L1:
        return d > 0 ? 1 : d < 0 ? -1 : d;
    case TESS_CHARBONNIER: {
        const double root = sqrt(d * d + loss->epsilon * loss->epsilon);
        return root > 0 ? d / root : d;
    }
    case TESS_RMSE:
    case TESS_PSNR:
        return NAN;
    case TESS_BCE_LOGITS:
        return 1 - target - weight_of_target(loss, target) * sigmoid(-prediction);
    case TESS_MEAN:
        return 1;
    case TESS_IOU:
        return sigmoid(prediction) * sigmoid(-prediction) * ((1 - target) * job->miss - target * job->hit);
    }
    return NAN;
}

/* Values [c, c + count) of a run of line `line`: prediction, target and weight. */
typedef struct few_values {
    float prediction[TESS_CPU_FEW], target[TESS_CPU_FEW], weight[TESS_CPU_FEW];
} few_values;

static void load(const loss_job *job, int64_t line, int64_t x, int64_t c, int64_t count, few_values *few)
{
    const tess_op *op = job->op;
    const tess_tensor *in = op->in;
    float *const to[] = {few->prediction, few->target, NULL, few->weight};
    for (int64_t i = 0; i < count; i++)
        few->weight[i] = 1;
    for (int k = 0; k < op->inputs; k++) {
        const bool one = k == 3 && in[3].c < in[0].c; /* one weight for all channels */
        if (k == 2)
            continue;
        tess_cpu_load(in[k].dtype, job->buffers->in[k],
                      tess_cpu_line(&in[k], line) + x * in[k].stride_w + (one ? 0 : c), one ? 1 : count,
                      to[k]);
        for (int64_t i = 1; one && i < count; i++)
            few->weight[i] = few->weight[0];
    }
}

static tess_cpu_runs runs_of(const tess_op *op)
{
    const tess_tensor all[3] = {op->in[0], op->in[1], op->in[op->inputs > 3 ? 3 : 0]};
    return tess_cpu_runs_of(all, &op->out[0], 3);
}

static void sum_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const loss_job *job = arg;
    const tess_tensor *in = &job->op->in[0];
    const tess_cpu_runs runs = runs_of(job->op);
    const int64_t lines = lines_a_block(in), end = tess_min_i64(tess_cpu_lines(in), (item + 1) * lines);
    const bool iou = job->op->loss.kind == TESS_IOU;
    double *sums = (double *)job->buffers->workspace + 2 * item, loss = 0, weight = 0;
    few_values few;
    for (int64_t line = item * lines; line < end; line++)
        for (int64_t x = 0; x < runs.runs; x++)
            for (int64_t c = 0; c < runs.length; c += TESS_CPU_FEW) {
                const int64_t count = tess_min_i64(TESS_CPU_FEW, runs.length - c);
                load(job, line, x, c, count, &few);
                for (int64_t i = 0; i < count; i++) {
                    const double one = loss_of(&job->op->loss, few.prediction[i], few.target[i]);
                    const double w = iou ? sigmoid(few.prediction[i]) + (double)few.target[i] - one
                                         : (double)few.weight[i];
                    loss += iou ? one : w * one;
                    weight += w;
                }
            }
    sums[0] = loss;
    sums[1] = weight;
}

/* An item is a line. */
static void gradient_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const loss_job *job = arg;
    const tess_tensor *out = &job->op->out[0];
    const tess_cpu_runs runs = runs_of(job->op);
    few_values few;
    float gradients[TESS_CPU_FEW];
    for (int64_t x = 0; x < runs.runs; x++)
        for (int64_t c = 0; c < runs.length; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, runs.length - c);
            load(job, line, x, c, count, &few);
            for (int64_t i = 0; i < count; i++)
                gradients[i] = (float)(job->factor * (double)few.weight[i] *
                                       derivative_of(job, few.prediction[i], few.target[i]));
            tess_cpu_store(out->dtype, job->buffers->out[0], tess_cpu_line(out, line) + x * out->stride_w + c,
                           count, gradients);
        }
}

static void loss_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    tess_pool *pool = tess_cpu_of(device)->pool;
    const double *sums = buffers->workspace, *control = buffers->in[2];
    loss_job job = {.op = op, .buffers = buffers};
    double loss = 0, weight = 0;
    const int64_t blocks = blocks_of(&op->in[0]);
    tess_pool_run(pool, blocks, sum_item, &job);
    for (int64_t i = 0; i < blocks; i++) {
        loss += sums[2 * i];
        weight += sums[2 * i + 1];
    }
    /* A mask without weights: neither loss nor gradients. */
    double share = weight > 0 || weight < 0 ? op->loss.share / weight : 0;
    if (op->loss.kind == TESS_IOU) {
        const double whole = weight + op->loss.epsilon, part = loss + op->loss.epsilon;
        job.hit = 1 / whole;
        job.miss = part / (whole * whole);
        loss = 1 - part / whole;
        share = op->loss.share;
    }
    job.factor = share * control[TESS_CONTROL_LOSS_SCALE];
    double *out = buffers->out[1];
    *out = share * loss + (op->loss.accumulate ? *out : 0);
    tess_pool_run(pool, tess_cpu_lines(&op->out[0]), gradient_item, &job);
}

static bool is_mask(const tess_tensor *mask, const tess_tensor *values)
{
    tess_tensor one = *values;
    one.c = 1;
    return tess_cpu_is_value(mask) && (tess_cpu_same_sizes(mask, values) || tess_cpu_same_sizes(mask, &one));
}

tess_status tess_cpu_loss_refuses(const tess_op *op, tess_error *why)
{
    if (!tess_cpu_is_value(&op->in[0]) || !tess_cpu_is_value(&op->in[1]) || !tess_cpu_is_value(&op->out[0]))
        return tess_kernel_refuse(why, "the CPU computes in fp32 or bf16; use `precision` fp32");
    if (!tess_cpu_same_sizes(&op->in[0], &op->in[1]) || !tess_cpu_same_sizes(&op->in[0], &op->out[0]) ||
        !tess_cpu_is_vector(&op->in[2], TESS_F64, TESS_CONTROLS) || op->outputs != 2 ||
        !tess_cpu_is_vector(&op->out[1], TESS_F64, 1))
        return tess_kernel_refuse(
            why, "a loss takes a prediction and a target of one shape and the control vector, "
                 "and gives gradients and one fp64 value");
    if (op->loss.kind == TESS_MASKED_MSE ? op->inputs != 4 || !is_mask(&op->in[3], &op->in[0])
                                         : op->inputs != 3)
        return tess_kernel_refuse(why,
                                  "a masked loss takes a mask of the prediction's shape or of one channel; "
                                  "other losses take none");
    return TESS_OK;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind != TESS_OP_LOSS || tess_loss_by_image(op->loss.kind))
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_loss_refuses(op, why);
}

const tess_kernel tess_cpu_loss = {.name = "loss", .refuses = refuses, .needs = loss_needs, .run = loss_run};
