/* The gradient of attention as plain loops in fp64. The largest score, the sum of the exponentials and the product of
 * gradient and output are kept for each query; scores are computed again. */
#include "op/attention.h"

#include "cpu/reference/reference.h"
#include "cpu/reference/values.h"

enum { GRADIENT, VALUES, RESULT };

typedef struct head_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    tess_head head;
    int64_t n, pixels;
    double *queries; /* [pixel][largest score, sum of exponentials, gradient . output] */
} head_job;

/* The product of a head's channels of two pixels. */
static double dot(const head_job *j, const int input[2], const int64_t channel[2], const int64_t pixel[2])
{
    int64_t at[2];
    for (int i = 0; i < 2; i++) {
        const tess_tensor *t = &j->op->in[input[i]];
        at[i] =
            tess_reference_place(t, j->n, pixel[i] / t->w / t->h, pixel[i] / t->w % t->h, pixel[i] % t->w) +
            channel[i];
    }
    double sum = 0;
    for (int64_t c = 0; c < j->head.channels; c++)
        sum += tess_reference_load(&j->op->in[input[0]], j->buffers->in[input[0]], at[0] + c) *
               tess_reference_load(&j->op->in[input[1]], j->buffers->in[input[1]], at[1] + c);
    return sum;
}

static double score(const head_job *j, int64_t query, int64_t key)
{
    return dot(j, (int[2]){VALUES, VALUES}, (int64_t[2]){j->head.query, j->head.key},
               (int64_t[2]){query, key}) /
           sqrt((double)j->head.channels);
}

static void start(const head_job *j, int64_t query)
{
    double most = -INFINITY, total = 0, *of = j->queries + 3 * query;
    for (int64_t key = 0; key < j->pixels; key++)
        most = fmax(most, score(j, query, key));
    for (int64_t key = 0; key < j->pixels; key++)
        total += exp(score(j, query, key) - most);
    of[0] = most;
    of[1] = total;
    of[2] = dot(j, (int[2]){GRADIENT, RESULT}, (int64_t[2]){j->head.out, j->head.out},
                (int64_t[2]){query, query});
}

/* The weight of a key for a query; `slope`: the derivative by their product query . key. */
static double weight(const head_job *j, int64_t query, int64_t key, double *slope)
{
    const double *of = j->queries + 3 * query, p = exp(score(j, query, key) - of[0]) / of[1];
    const double along = dot(j, (int[2]){GRADIENT, VALUES}, (int64_t[2]){j->head.out, j->head.value},
                             (int64_t[2]){query, key});
    *slope = p * (along - of[2]) / sqrt((double)j->head.channels);
    return p;
}

static double load(const head_job *j, int input, int64_t pixel, int64_t channel)
{
    const tess_tensor *t = &j->op->in[input];
    return tess_reference_load(
        t, j->buffers->in[input],
        tess_reference_place(t, j->n, pixel / t->w / t->h, pixel / t->w % t->h, pixel % t->w) + channel);
}

/* The gradients of query, key and value of one pixel. */
static void store_pixel(const head_job *j, int64_t pixel)
{
    const tess_tensor *out = &j->op->out[0];
    const int64_t at =
        tess_reference_place(out, j->n, pixel / out->w / out->h, pixel / out->w % out->h, pixel % out->w);
    for (int64_t c = 0; c < j->head.channels; c++) {
        double query = 0, key = 0, value = 0, slope;
        for (int64_t other = 0; other < j->pixels; other++) {
            weight(j, pixel, other, &slope);
            query += slope * load(j, VALUES, other, j->head.key + c);
            const double p = weight(j, other, pixel, &slope);
            key += slope * load(j, VALUES, other, j->head.query + c);
            value += p * load(j, GRADIENT, other, j->head.out + c);
        }
        tess_reference_store(out, j->buffers->out[0], at + j->head.query + c, query);
        tess_reference_store(out, j->buffers->out[0], at + j->head.key + c, key);
        tess_reference_store(out, j->buffers->out[0], at + j->head.value + c, value);
    }
}

void tess_reference_attention_grad(const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_tensor *in = &op->in[VALUES];
    head_job j = {
        .op = op, .buffers = buffers, .pixels = in->d * in->h * in->w, .queries = buffers->workspace};
    for (j.n = 0; j.n < in->n; j.n++)
        for (int64_t h = 0; h < op->attention.heads; h++) {
            j.head = tess_head_of(op, h);
            for (int64_t pixel = 0; pixel < j.pixels; pixel++)
                start(&j, pixel);
            for (int64_t pixel = 0; pixel < j.pixels; pixel++)
                store_pixel(&j, pixel);
        }
}
