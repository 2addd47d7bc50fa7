/* The losses RMSE and PSNR: means over images of the root of each image's mean square error, or of 20 log10 of it. Lines are divided into blocks by
 * the size of an image alone; each block is summed, then the blocks of an image in their order. A second pass writes
 * the gradients, which need the roots. */
#include <math.h>

#include "base/checked.h"
#include "cpu/core/activation.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"

enum { BLOCK = 1 << 14 }; /* values, about */

typedef struct rms_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    double *sums, *roots; /* of each block; of each image */
    double factor;        /* of the gradients */
} rms_job;

static int64_t lines_of(const tess_tensor *t)
{
    return t->d * t->h;
}

static int64_t lines_a_block(const tess_tensor *t)
{
    return tess_max_i64(1, BLOCK / tess_max_i64(1, t->w * t->c));
}

static int64_t blocks_of(const tess_tensor *t)
{
    return tess_ceil_div(lines_of(t), lines_a_block(t));
}

static void rms_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    (void)device;
    const tess_tensor *t = &op->in[0];
    *needs = (tess_op_needs){.workspace = (size_t)(t->n * (blocks_of(t) + 1)) * sizeof(double), .block = 1};
}

/* Prediction minus target, for `count` values of a line. */
static void differences(const rms_job *job, int64_t line, int64_t x, int64_t c, int64_t count,
                        double d[TESS_CPU_FEW])
{
    float prediction[TESS_CPU_FEW], target[TESS_CPU_FEW];
    float *const to[] = {prediction, target};
    for (int k = 0; k < 2; k++) {
        const tess_tensor *t = &job->op->in[k];
        tess_cpu_load(t->dtype, job->buffers->in[k], tess_cpu_line(t, line) + x * t->stride_w + c, count,
                      to[k]);
    }
    for (int64_t i = 0; i < count; i++)
        d[i] = (double)prediction[i] - (double)target[i];
}

static void sum_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const rms_job *job = arg;
    const tess_tensor *in = &job->op->in[0];
    const tess_cpu_runs runs = tess_cpu_runs_of(in, &job->op->in[1], 1);
    const int64_t blocks = blocks_of(in), image = item / blocks, lines = lines_a_block(in),
                  first = item % blocks * lines, end = tess_min_i64(lines_of(in), first + lines);
    double sum = 0, d[TESS_CPU_FEW];
    for (int64_t line = first; line < end; line++)
        for (int64_t x = 0; x < runs.runs; x++)
            for (int64_t c = 0; c < runs.length; c += TESS_CPU_FEW) {
                const int64_t count = tess_min_i64(TESS_CPU_FEW, runs.length - c);
                differences(job, image * lines_of(in) + line, x, c, count, d);
                for (int64_t i = 0; i < count; i++)
                    sum += d[i] * d[i];
            }
    job->sums[item] = sum;
}

/* An item is a line. */
static void gradient_item(void *arg, int64_t line, int thread)
{
    (void)thread;
    const rms_job *job = arg;
    const tess_tensor *out = &job->op->out[0];
    const tess_cpu_runs runs = tess_cpu_runs_of(job->op->in, out, 2);
    const double root = job->roots[line / lines_of(out)],
                 by = job->op->loss.kind == TESS_PSNR ? root * root : root,
                 factor = by > 0 ? job->factor / by : job->factor;
    double d[TESS_CPU_FEW];
    float gradients[TESS_CPU_FEW];
    for (int64_t x = 0; x < runs.runs; x++)
        for (int64_t c = 0; c < runs.length; c += TESS_CPU_FEW) {
            const int64_t count = tess_min_i64(TESS_CPU_FEW, runs.length - c);
            differences(job, line, x, c, count, d);
            for (int64_t i = 0; i < count; i++)
                gradients[i] = (float)(factor * d[i]);
            tess_cpu_store(out->dtype, job->buffers->out[0], tess_cpu_line(out, line) + x * out->stride_w + c,
                           count, gradients);
        }
}

static void rms_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                    tess_stream *stream)
{
    (void)state, (void)stream;
    tess_pool *pool = tess_cpu_of(device)->pool;
    const tess_tensor *in = &op->in[0];
    const int64_t blocks = blocks_of(in);
    const double *control = buffers->in[2];
    const double values = (double)(lines_of(in) * in->w * in->c);
    rms_job job = {.op = op, .buffers = buffers, .sums = buffers->workspace};
    job.roots = job.sums + in->n * blocks;
    tess_pool_run(pool, in->n * blocks, sum_item, &job);
    const bool psnr = op->loss.kind == TESS_PSNR;
    double loss = 0;
    for (int64_t n = 0; n < in->n; n++) {
        double sum = 0;
        for (int64_t i = 0; i < blocks; i++)
            sum += job.sums[n * blocks + i];
        job.roots[n] = sqrt(sum / values + op->loss.epsilon * op->loss.epsilon);
        loss += psnr ? 20 * log10(job.roots[n]) : job.roots[n];
    }
    const double share = op->loss.share / (double)in->n;
    job.factor = share * control[TESS_CONTROL_LOSS_SCALE] / values * (psnr ? 20 / log(10) : 1);
    double *out = buffers->out[1];
    *out = share * loss + (op->loss.accumulate ? *out : 0);
    tess_pool_run(pool, tess_cpu_lines(&op->out[0]), gradient_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    (void)device;
    if (op->kind != TESS_OP_LOSS || !tess_loss_by_image(op->loss.kind))
        return tess_kernel_refuse(why, NULL);
    return tess_cpu_loss_refuses(op, why);
}

const tess_kernel tess_cpu_loss_rms = {
    .name = "loss_rms", .refuses = refuses, .needs = rms_needs, .run = rms_run};
