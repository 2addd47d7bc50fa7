/* Optimizers and the moving average of parameters, over flat fp32 blocks. Each value is independent; formulas and
 * order of operations are those of PyTorch 2 on one tensor (torch/optim: _single_tensor_sgd, _single_tensor_adam),
 * whose factors are computed in fp64 and rounded to fp32. The reference and every instruction set share this code. */
#include <math.h>

#include "base/checked.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

enum { BLOCK = 1 << 13 }; /* values per item */

typedef struct optimize_job {
    const tess_op *op;
    const float *gradients;
    float *values, *first, *second;
    int64_t count;
    float gradient_factor, weight_decay;
    float rate, momentum;                                   /* SGD */
    float keep, blend1, blend2, beta2, step, root, epsilon; /* Adam: see its formula */
} optimize_job;

/* A copy of the job tells the compiler that no store changes it. */
static void sgd_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const optimize_job j = *(const optimize_job *)arg;
    const float *restrict gradients = j.gradients;
    float *restrict values = j.values, *restrict buffer = j.first;
    const int64_t begin = item * BLOCK, end = tess_min_i64(j.count, begin + BLOCK);
    if (!buffer) {
        for (int64_t i = begin; i < end; i++)
            values[i] += -j.rate * (gradients[i] * j.gradient_factor + j.weight_decay * values[i]);
        return;
    }
    const bool nesterov = j.op->optimize.nesterov;
    for (int64_t i = begin; i < end; i++) {
        const float g = gradients[i] * j.gradient_factor + j.weight_decay * values[i],
                    b = buffer[i] * j.momentum + g;
        buffer[i] = b;
        values[i] += -j.rate * (nesterov ? g + j.momentum * b : b);
    }
}

/* Adam adds the weight decay to the gradient, AdamW multiplies the parameter by `keep`; the other is neutral. */
static void adam_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const optimize_job j = *(const optimize_job *)arg;
    const float *restrict gradients = j.gradients;
    float *restrict values = j.values, *restrict first = j.first, *restrict second = j.second;
    const int64_t end = tess_min_i64(j.count, (item + 1) * BLOCK);
    for (int64_t i = item * BLOCK; i < end; i++) {
        const float kept = values[i] * j.keep;
        const float g = gradients[i] * j.gradient_factor + j.weight_decay * kept;
        const float m = first[i] + j.blend1 * (g - first[i]), v = second[i] * j.beta2 + j.blend2 * g * g;
        first[i] = m;
        second[i] = v;
        values[i] = kept + j.step * m / (sqrtf(v) / j.root + j.epsilon);
    }
}

static void average_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const optimize_job j = *(const optimize_job *)arg;
    const float *restrict values = j.gradients;
    float *restrict average = j.values;
    const int64_t end = tess_min_i64(j.count, (item + 1) * BLOCK);
    for (int64_t i = item * BLOCK; i < end; i++)
        average[i] = j.keep * average[i] + j.blend1 * values[i];
}

/* Clipping as torch.nn.utils.clip_grad_norm_, and the loss scale. */
static double gradient_factor(const tess_op_optimize *o, double scale, double squares)
{
    const double norm = sqrt(squares) / scale, most = o->clip / (norm + 1e-6);
    return (o->clip > 0 && most < 1 ? most : 1) / scale;
}

static void set_adam(optimize_job *job, const double *control)
{
    const tess_op_optimize *o = &job->op->optimize;
    const double rate = control[TESS_CONTROL_RATE];
    const bool decoupled = o->kind == TESS_ADAMW;
    job->keep = decoupled ? (float)(1 - rate * o->weight_decay) : 1;
    job->weight_decay = decoupled ? 0 : (float)o->weight_decay;
    job->blend1 = (float)(1 - o->beta1);
    job->blend2 = (float)(1 - o->beta2);
    job->beta2 = (float)o->beta2;
    job->step = (float)-(rate / control[TESS_CONTROL_CORRECTION1]);
    job->root = (float)sqrt(control[TESS_CONTROL_CORRECTION2]);
    job->epsilon = (float)o->epsilon;
}

static void optimize_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                         tess_stream *stream)
{
    (void)state, (void)stream;
    const double *control = buffers->in[1], squares = *(const double *)buffers->in[2];
    optimize_job job = {.op = op,
                        .gradients = buffers->in[0],
                        .values = buffers->out[0],
                        .first = op->outputs > 1 ? buffers->out[1] : NULL,
                        .second = op->outputs > 2 ? buffers->out[2] : NULL,
                        .count = tess_cpu_values(&op->in[0])};
    if (!isfinite(squares))
        return;
    tess_loop_fn item = average_item;
    if (op->kind == TESS_OP_AVERAGE) {
        job.keep = (float)control[TESS_CONTROL_DECAY];
        job.blend1 = (float)(1 - control[TESS_CONTROL_DECAY]);
    } else {
        job.gradient_factor =
            (float)gradient_factor(&op->optimize, control[TESS_CONTROL_LOSS_SCALE], squares);
        job.weight_decay = (float)op->optimize.weight_decay;
        job.rate = (float)control[TESS_CONTROL_RATE];
        job.momentum = (float)op->optimize.momentum;
        item = op->optimize.kind == TESS_SGD ? sgd_item : adam_item;
        if (op->optimize.kind == TESS_SGD && !(op->optimize.momentum > 0))
            job.first = NULL;
        else if (op->optimize.kind != TESS_SGD)
            set_adam(&job, control);
    }
    tess_pool_run(tess_cpu_of(device)->pool, tess_ceil_div(job.count, BLOCK), item, &job);
}

static int moments_of(const tess_op_optimize *o)
{
    return o->kind == TESS_SGD ? o->momentum > 0 : 2;
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind != TESS_OP_OPTIMIZE && op->kind != TESS_OP_AVERAGE)
        return tess_kernel_refuse(why, NULL);
    const int64_t count = tess_cpu_values(&op->in[0]);
    bool fits = tess_cpu_is_vector(&op->in[0], TESS_F32, count) &&
                tess_cpu_is_vector(&op->in[1], TESS_F64, TESS_CONTROLS) &&
                tess_cpu_is_vector(&op->in[2], TESS_F64, 1);
    for (int i = 0; i < op->outputs; i++)
        fits = fits && tess_cpu_is_vector(&op->out[i], TESS_F32, count);
    if (!fits)
        return tess_kernel_refuse(
            why, "an optimizer takes flat fp32 blocks of one size, the control vector and one "
                 "fp64 sum of squares");
    if (op->kind == TESS_OP_OPTIMIZE && op->outputs < 1 + moments_of(&op->optimize))
        return tess_kernel_refuse(why, "this optimizer needs more moments: momentum of SGD one, Adam two");
    return TESS_OK;
}

const tess_kernel tess_cpu_optimize = {.name = "optimize", .refuses = refuses, .run = optimize_run};
