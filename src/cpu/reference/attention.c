/* Attention as plain loops in fp64: the largest score, then the sum of the exponentials, then each channel.
 * Scores are recomputed each time instead of stored. */
#include "op/attention.h"

#include "cpu/attention/attention.h"
#include "cpu/reference/reference.h"
#include "cpu/reference/values.h"

typedef struct attention_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
} attention_job;

static int64_t pixels_of(const tess_tensor *t)
{
    return t->d * t->h * t->w;
}

static int64_t place(const tess_tensor *t, int64_t n, int64_t pixel)
{
    return tess_reference_place(t, n, pixel / t->w / t->h, pixel / t->w % t->h, pixel % t->w);
}

static double score(const attention_job *job, const tess_head *head, int64_t n, int64_t query, int64_t key)
{
    const tess_tensor *in = &job->op->in[0];
    const int64_t a = place(in, n, query) + head->query, b = place(in, n, key) + head->key;
    double sum = 0;
    for (int64_t c = 0; c < head->channels; c++)
        sum += tess_reference_load(in, job->buffers->in[0], a + c) *
               tess_reference_load(in, job->buffers->in[0], b + c);
    return sum / sqrt((double)head->channels);
}

static void attend(const attention_job *job, const tess_head *head, int64_t n, int64_t query)
{
    const tess_tensor *in = &job->op->in[0], *out = &job->op->out[0];
    double most = -INFINITY, total = 0;
    for (int64_t key = 0; key < pixels_of(in); key++)
        most = fmax(most, score(job, head, n, query, key));
    for (int64_t key = 0; key < pixels_of(in); key++)
        total += exp(score(job, head, n, query, key) - most);
    for (int64_t c = 0; c < head->channels; c++) {
        double sum = 0;
        for (int64_t key = 0; key < pixels_of(in); key++)
            sum += exp(score(job, head, n, query, key) - most) *
                   tess_reference_load(in, job->buffers->in[0], place(in, n, key) + head->value + c);
        tess_reference_store(out, job->buffers->out[0], place(out, n, query) + head->out + c, sum / total);
    }
}

/* An item is one query of one image, with all its heads. */
static void attention_item(void *arg, int64_t item, int thread)
{
    (void)thread;
    const attention_job *job = arg;
    const int64_t pixels = pixels_of(&job->op->in[0]);
    for (int64_t h = 0; h < job->op->attention.heads; h++) {
        const tess_head head = tess_head_of(job->op, h);
        attend(job, &head, item / pixels, item % pixels);
    }
}

void tess_reference_attention(const tess_op *op, const tess_op_buffers *buffers)
{
    attention_job job = {op, buffers};
    for (int64_t item = 0; item < op->in[0].n * pixels_of(&op->in[0]); item++)
        attention_item(&job, item, 0);
}

static void attention_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)state, (void)stream;
    attention_job job = {op, buffers};
    tess_pool_run(tess_cpu_of(device)->pool, op->in[0].n * pixels_of(&op->in[0]), attention_item, &job);
}

const tess_kernel tess_cpu_attention_reference = {
    .name = "attention reference", .refuses = tess_cpu_attention_refuses, .run = attention_run};
