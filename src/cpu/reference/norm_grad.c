/* Batch norm as it is trained, and the gradients of norms, as plain loops in fp64. */
#include "cpu/core/lines.h"
#include "cpu/reference/reference.h"
#include "cpu/reference/values.h"

/* Channels [first, first + width) of images [from, to): what one mean is taken over. */
typedef struct group {
    int64_t from, to, first, width;
    double mean, inverse; /* inverse: 1 / sqrt(variance + epsilon) */
} group;

/* Pixel `i` of image n: the offset of its first channel. */
static int64_t place(const tess_tensor *t, int64_t n, int64_t i)
{
    return tess_reference_place(t, n, i / t->w / t->h, i / t->w % t->h, i % t->w);
}

static int64_t pixels_of(const tess_tensor *t)
{
    return t->d * t->h * t->w;
}

static double count_of(const tess_tensor *in, const group *g)
{
    return (double)((g->to - g->from) * pixels_of(in) * g->width);
}

static double mean_around(const tess_tensor *in, const void *data, const group *g, double centre, int power)
{
    double sum = 0;
    for (int64_t n = g->from; n < g->to; n++)
        for (int64_t i = 0; i < pixels_of(in); i++)
            for (int64_t c = g->first; c < g->first + g->width; c++)
                sum += pow(tess_reference_load(in, data, place(in, n, i) + c) - centre, power);
    return sum / count_of(in, g);
}

void tess_reference_batch_norm(const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_tensor *in = &op->in[0], *out = &op->out[0];
    const float *params = buffers->in[1];
    float *statistics = buffers->out[1], *running = op->outputs > 2 ? buffers->out[2] : NULL;
    const double momentum = op->batch_norm.momentum;
    for (int64_t c = 0; c < in->c; c++) {
        const group g = {.to = in->n, .first = c, .width = 1};
        const double mean = mean_around(in, buffers->in[0], &g, 0, 1),
                     variance = mean_around(in, buffers->in[0], &g, mean, 2), count = count_of(in, &g),
                     inverse = 1 / sqrt(variance + op->batch_norm.epsilon);
        for (int64_t n = 0; n < in->n; n++)
            for (int64_t i = 0; i < pixels_of(in); i++) {
                const double value = tess_reference_load(in, buffers->in[0], place(in, n, i) + c),
                             result = (value - mean) * inverse * params[c] + params[in->c + c];
                tess_reference_store(out, buffers->out[0], place(out, n, i) + c,
                                     tess_reference_activated(op->activation, result));
            }
        statistics[c] = (float)mean;
        statistics[in->c + c] = (float)inverse;
        if (running) {
            const double unbiased = variance * count / (count > 1 ? count - 1 : 1);
            running[c] += (float)(momentum * (mean - (double)running[c]));
            running[in->c + c] += (float)(momentum * (unbiased - (double)running[in->c + c]));
        }
    }
}

void tess_reference_batch_norm_grad(const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_tensor *gradient = &op->in[0], *in = &op->in[1], *out = &op->out[0];
    const float *statistics = buffers->in[2], *params = buffers->in[3];
    float *to = buffers->out[1];
    const double count = (double)(in->n * pixels_of(in));
    for (int64_t c = 0; c < in->c; c++) {
        const double mean = statistics[c], inverse = statistics[in->c + c];
        double sum = 0, product = 0;
        for (int pass = 0; pass < 2; pass++)
            for (int64_t k = 0; k < in->n * pixels_of(in); k++) {
                const int64_t n = k / pixels_of(in), i = k % pixels_of(in);
                const double g = tess_reference_load(gradient, buffers->in[0], place(gradient, n, i) + c),
                             value = tess_reference_load(in, buffers->in[1], place(in, n, i) + c),
                             normed = (value - mean) * inverse;
                if (pass == 0)
                    sum += g, product += g * normed;
                else
                    tess_reference_store(out, buffers->out[0], place(out, n, i) + c,
                                         (g - sum / count - normed * product / count) * params[c] * inverse);
            }
        to[c] = (float)(product + (op->batch_norm.accumulate ? (double)to[c] : 0));
        to[in->c + c] = (float)(sum + (op->batch_norm.accumulate ? (double)to[in->c + c] : 0));
    }
}

/* A group norm's backward op with what its parts share. */
typedef struct norm_grad {
    const tess_op *op;
    const tess_op_buffers *buffers;
    const float *params;
    double *sums; /* [n][c][sum of g, sum of g * normed], g before the activation */
} norm_grad;

static void scale_shift(const norm_grad *j, int64_t n, int64_t c, double of[2])
{
    const tess_tensor *more = &j->op->in[3];
    of[0] = of[1] = 0;
    for (int i = 0; i < 2 && j->op->inputs > 3; i++)
        of[i] = tess_reference_load(more, j->buffers->in[3], n * more->stride_n + i * j->op->in[1].c + c);
}

/* The gradient before the activation of one value, and the value normed. */
static double before(const norm_grad *j, const group *g, int64_t i, int64_t c, double *normed)
{
    const tess_tensor *gradient = &j->op->in[0], *in = &j->op->in[1];
    double of[2];
    scale_shift(j, g->from, c, of);
    *normed = (tess_reference_load(in, j->buffers->in[1], place(in, g->from, i) + c) - g->mean) * g->inverse;
    const double result = (*normed * j->params[c] + j->params[in->c + c]) * (1 + of[0]) + of[1];
    return tess_reference_before_activation(
        j->op->activation, tess_reference_load(gradient, j->buffers->in[0], place(gradient, g->from, i) + c),
        result);
}

static void store_group(const norm_grad *j, const group *g)
{
    const tess_tensor *in = &j->op->in[1], *out = &j->op->out[0];
    double sum = 0, product = 0, normed, of[2];
    for (int64_t c = g->first; c < g->first + g->width; c++) {
        double *sums = j->sums + 2 * (g->from * in->c + c);
        sums[0] = sums[1] = 0;
        for (int64_t i = 0; i < pixels_of(in); i++) {
            const double b = before(j, g, i, c, &normed);
            sums[0] += b;
            sums[1] += b * normed;
        }
        scale_shift(j, g->from, c, of);
        sum += sums[0] * j->params[c] * (1 + of[0]);
        product += sums[1] * j->params[c] * (1 + of[0]);
    }
    for (int64_t c = g->first; c < g->first + g->width; c++) {
        scale_shift(j, g->from, c, of);
        for (int64_t i = 0; i < pixels_of(in); i++) {
            const double b = before(j, g, i, c, &normed) * j->params[c] * (1 + of[0]);
            tess_reference_store(out, j->buffers->out[0], place(out, g->from, i) + c,
                                 (b - sum / count_of(in, g) - normed * product / count_of(in, g)) *
                                     g->inverse);
        }
    }
}

static void store_params(const norm_grad *j)
{
    const tess_tensor *in = &j->op->in[1], *more = &j->op->out[2];
    float *to = j->buffers->out[1];
    for (int64_t c = 0; c < in->c; c++) {
        double weight = j->op->group_norm.accumulate ? (double)to[c] : 0,
               bias = j->op->group_norm.accumulate ? (double)to[in->c + c] : 0, of[2];
        for (int64_t n = 0; n < in->n; n++) {
            const double *sums = j->sums + 2 * (n * in->c + c);
            scale_shift(j, n, c, of);
            weight += sums[1] * (1 + of[0]);
            bias += sums[0] * (1 + of[0]);
            if (j->op->inputs > 3) {
                const int64_t at = n * more->stride_n + c;
                tess_reference_store(more, j->buffers->out[2], at,
                                     sums[1] * j->params[c] + sums[0] * j->params[in->c + c]);
                tess_reference_store(more, j->buffers->out[2], at + in->c, sums[0]);
            }
        }
        to[c] = (float)weight;
        to[in->c + c] = (float)bias;
    }
}

void tess_reference_group_norm_grad(const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_tensor *in = &op->in[1];
    const norm_grad j = {op, buffers, buffers->in[2], buffers->workspace};
    const int64_t width = in->c / op->group_norm.groups;
    for (int64_t n = 0; n < in->n; n++)
        for (int64_t first = 0; first < in->c; first += width) {
            group g = {.from = n, .to = n + 1, .first = first, .width = width};
            g.mean = mean_around(in, buffers->in[1], &g, 0, 1);
            g.inverse = 1 / sqrt(mean_around(in, buffers->in[1], &g, g.mean, 2) + op->group_norm.epsilon);
            store_group(&j, &g);
        }
    store_params(&j);
}
