/* The backward pass of attention without storing the matrix of pixels by pixels (Dao 2023, FlashAttention-2, section
 * 3.1.2). With P = softmax(query . key), g the gradient of the output and o the output:
 *
 *   S = P * (g . value - g . o);  gradients: query = S key, key = S query, value = P g
 *
 * One pass has queries in the lanes: it computes the softmax again, keeps its largest score and its sum for each query,
 * and sums the gradient of the queries. The second has keys in the lanes and sums the gradients of keys and values. No
 * sum is shared between items, so that results depend neither on threads nor on neighbours; scores are computed
 * twice for that. */
#include <float.h>
#include <math.h>

#include "cpu/attention/lanes.h"
#include "cpu/core/activation.h"
#include "cpu/core/cpu.h"
#include "cpu/core/lines.h"
#include "op/attention.h"

enum {
    LANES = TESS_LANES,
    TEAMS = 4,
    OWN = TEAMS * LANES, /* pixels in lanes, of an item */
    BLOCK = 64           /* pixels in rows, which all teams read */
};
enum { INPUT_GRADIENT, INPUT_VALUES, INPUT_RESULT };

/* What is known of a query after the first pass. */
typedef struct query_state {
    float most, inverse, along; /* largest score, 1 / sum of the exponentials, g . o */
} query_state;

/* The scratch of a thread. Lanes: query and g, or key and value; rows: the others. */
typedef struct scratch {
    float *lanes[2], *sum[2]; /* [team][channel][lane] */
    float *rows[2];           /* [pixel][channel] */
    float weight[BLOCK][LANES], slope[BLOCK][LANES];
    float most[TEAMS][LANES], total[TEAMS][LANES], along[TEAMS][LANES];
} scratch;

typedef struct grad_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    int64_t pixels, items; /* per image; per head */
    size_t thread_bytes;
    char *scratch;
    query_state *queries; /* [n][head][pixel] */
} grad_job;

static grad_job job_of(const tess_op *op, const tess_op_buffers *buffers)
{
    const tess_tensor *in = &op->in[INPUT_VALUES];
    grad_job job = {.op = op, .buffers = buffers, .pixels = in->d * in->h * in->w};
    const size_t head = (size_t)(op->in[INPUT_GRADIENT].c / op->attention.heads);
    job.items = tess_ceil_div(job.pixels, OWN);
    job.thread_bytes = tess_align_size(sizeof(scratch), 64) +
                       tess_align_size(head * (4 * OWN + 2 * BLOCK) * sizeof(float), 64);
    return job;
}

static size_t queries_bytes(const grad_job *job)
{
    const size_t count = (size_t)(job->op->in[0].n * job->op->attention.heads * job->pixels);
    return tess_align_size(count * sizeof(query_state), 64);
}

static void grad_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    const grad_job job = job_of(op, NULL);
    *needs = (tess_op_needs){.block = 1};
    needs->workspace =
        queries_bytes(&job) + job.thread_bytes * (size_t)tess_pool_threads(tess_cpu_of(device)->pool) + 64;
}

static scratch *scratch_of(const grad_job *job, int thread, int64_t head)
{
    scratch *s = (scratch *)(job->scratch + (size_t)thread * job->thread_bytes);
    float *at = (float *)((char *)s + tess_align_size(sizeof *s, 64));
    for (int i = 0; i < 2; i++) {
        s->lanes[i] = at + (2 * i) * head * OWN;
        s->sum[i] = at + (2 * i + 1) * head * OWN;
        s->rows[i] = at + 4 * head * OWN + i * head * BLOCK;
    }
    return s;
}

/* The part of the work that one item is. */
typedef struct span {
    tess_head head;
    int64_t n, first;
    query_state *queries; /* of the head */
    float scale;          /* of scores */
} span;

static span span_of(const grad_job *job, int64_t item)
{
    const int64_t heads = job->op->attention.heads, of_head = item / job->items;
    span p = {.head = tess_head_of(job->op, of_head % heads), .n = of_head / heads};
    p.first = item % job->items * OWN;
    p.queries = job->queries + of_head * job->pixels;
    p.scale = (float)(1 / sqrt((double)p.head.channels));
    return p;
}

/* Loads a head's channels of OWN pixels into lanes. Lanes beyond the last pixel repeat it; their results are not used. */
static void load_lanes(const grad_job *job, const span *p, int input, int64_t channel, float scale,
                       float *lanes)
{
    const tess_tensor *in = &job->op->in[input];
    const int64_t channels = p->head.channels;
    for (int64_t q = 0; q < OWN; q++) {
        const int64_t at = tess_lanes_place(in, p->n, tess_min_i64(p->first + q, job->pixels - 1)) + channel;
        float *to = lanes + q / LANES * channels * LANES + q % LANES;
        for (int64_t c = 0; c < channels; c++) {
            float value;
            tess_cpu_load(in->dtype, job->buffers->in[input], at + c, 1, &value);
            to[c * LANES] = value * scale;
        }
    }
}

static void load_rows(const grad_job *job, const span *p, int input, int64_t channel, int64_t begin,
                      int64_t count, float scale, float *rows)
{
    const tess_tensor *in = &job->op->in[input];
    const int64_t channels = p->head.channels;
    for (int64_t k = 0; k < count; k++)
        tess_cpu_load(in->dtype, job->buffers->in[input], tess_lanes_place(in, p->n, begin + k) + channel,
                      channels, rows + k * channels);
    for (int64_t i = 0; i < count * channels; i++)
        rows[i] *= scale;
}

static void store_lanes(const grad_job *job, const span *p, int64_t channel, const float *lanes)
{
    const tess_tensor *out = &job->op->out[0];
    const int64_t channels = p->head.channels;
    for (int64_t q = 0; q < OWN && p->first + q < job->pixels; q++) {
        const int64_t at = tess_lanes_place(out, p->n, p->first + q) + channel;
        const float *from = lanes + q / LANES * channels * LANES + q % LANES;
        for (int64_t c = 0; c < channels; c++)
            tess_cpu_store(out->dtype, job->buffers->out[0], at + c, 1, &from[c * LANES]);
    }
}

/* g . o of each query, and the start of its sums. */
static void start_queries(const grad_job *job, const span *p, scratch *s)
{
    const int64_t channels = p->head.channels;
    float *result = s->sum[1]; /* free in this pass */
    load_lanes(job, p, INPUT_RESULT, p->head.out, 1, result);
    for (int team = 0; team < TEAMS; team++)
        for (int i = 0; i < LANES; i++) {
            double along = 0;
            for (int64_t c = 0; c < channels; c++) {
                const int64_t at = (team * channels + c) * LANES + i;
                along += (double)s->lanes[1][at] * (double)result[at];
                s->sum[0][at] = 0;
            }
            s->along[team][i] = (float)along;
            s->most[team][i] = -FLT_MAX;
            s->total[team][i] = 0;
        }
}

/* Replaces products by P (not yet divided by its sum) and S; `rescale`: factor for the sums of earlier blocks. */
static void weigh_queries(scratch *s, int team, int64_t keys, float rescale[LANES])
{
    float most[LANES], sum[LANES], along[LANES];
    for (int i = 0; i < LANES; i++)
        most[i] = s->most[team][i], along[i] = s->along[team][i];
    for (int64_t k = 0; k < keys; k++)
        for (int i = 0; i < LANES; i++)
            most[i] = s->weight[k][i] > most[i] ? s->weight[k][i] : most[i];
    for (int i = 0; i < LANES; i++) {
        rescale[i] = tess_cpu_exp(s->most[team][i] - most[i]);
        sum[i] = 0;
    }
    for (int64_t k = 0; k < keys; k++)
        for (int i = 0; i < LANES; i++) {
            const float weight = tess_cpu_exp(s->weight[k][i] - most[i]);
            sum[i] += weight;
            s->slope[k][i] = weight * (s->slope[k][i] - along[i]);
        }
    for (int i = 0; i < LANES; i++) {
        s->most[team][i] = most[i];
        s->total[team][i] = s->total[team][i] * rescale[i] + sum[i];
    }
}

/* Divides by the sums of the softmax, and keeps what the second pass needs. */
static void finish_queries(const grad_job *job, const span *p, scratch *s)
{
    const int64_t channels = p->head.channels;
    for (int64_t q = 0; q < OWN && p->first + q < job->pixels; q++) {
        const int64_t team = q / LANES, i = q % LANES;
        const float inverse = 1 / s->total[team][i];
        p->queries[p->first + q] = (query_state){s->most[team][i], inverse, s->along[team][i]};
        for (int64_t c = 0; c < channels; c++)
            s->sum[0][(team * channels + c) * LANES + i] *= inverse * p->scale;
    }
}

static void query_item(void *arg, int64_t item, int thread)
{
    const grad_job *job = arg;
    const span p = span_of(job, item);
    const int64_t channels = p.head.channels;
    scratch *s = scratch_of(job, thread, channels);
    float rescale[LANES];
    load_lanes(job, &p, INPUT_VALUES, p.head.query, p.scale, s->lanes[0]);
    load_lanes(job, &p, INPUT_GRADIENT, p.head.out, 1, s->lanes[1]);
    start_queries(job, &p, s);
    for (int64_t begin = 0; begin < job->pixels; begin += BLOCK) {
        const int64_t keys = tess_min_i64(BLOCK, job->pixels - begin);
        load_rows(job, &p, INPUT_VALUES, p.head.key, begin, keys, 1, s->rows[0]);
        load_rows(job, &p, INPUT_VALUES, p.head.value, begin, keys, 1, s->rows[1]);
        for (int team = 0; team < TEAMS && p.first + team * LANES < job->pixels; team++) {
            const int64_t at = team * channels * LANES;
            tess_lanes_scores(s->rows[0], s->lanes[0] + at, channels, keys, s->weight[0]);
            tess_lanes_scores(s->rows[1], s->lanes[1] + at, channels, keys, s->slope[0]);
            weigh_queries(s, team, keys, rescale);
            tess_lanes_add(s->rows[0], s->slope[0], channels, keys, rescale, s->sum[0] + at);
        }
    }
    finish_queries(job, &p, s);
    store_lanes(job, &p, p.head.query, s->sum[0]);
}

static void weigh_keys(scratch *s, const query_state *queries, int64_t count)
{
    for (int64_t q = 0; q < count; q++) {
        const query_state of = queries[q];
        for (int i = 0; i < LANES; i++) {
            const float weight = tess_cpu_exp(s->weight[q][i] - of.most) * of.inverse;
            s->weight[q][i] = weight;
            s->slope[q][i] = weight * (s->slope[q][i] - of.along);
        }
    }
}

static void key_item(void *arg, int64_t item, int thread)
{
    const grad_job *job = arg;
    const span p = span_of(job, item);
    const int64_t channels = p.head.channels;
    scratch *s = scratch_of(job, thread, channels);
    float one[LANES];
    for (int i = 0; i < LANES; i++)
        one[i] = 1;
    load_lanes(job, &p, INPUT_VALUES, p.head.key, 1, s->lanes[0]);
    load_lanes(job, &p, INPUT_VALUES, p.head.value, 1, s->lanes[1]);
    for (int64_t i = 0; i < channels * OWN; i++)
        s->sum[0][i] = s->sum[1][i] = 0;
    for (int64_t begin = 0; begin < job->pixels; begin += BLOCK) {
        const int64_t count = tess_min_i64(BLOCK, job->pixels - begin);
        load_rows(job, &p, INPUT_VALUES, p.head.query, begin, count, p.scale, s->rows[0]);
        load_rows(job, &p, INPUT_GRADIENT, p.head.out, begin, count, 1, s->rows[1]);
        for (int team = 0; team < TEAMS && p.first + team * LANES < job->pixels; team++) {
            const int64_t at = team * channels * LANES;
            tess_lanes_scores(s->rows[0], s->lanes[0] + at, channels, count, s->weight[0]);
            tess_lanes_scores(s->rows[1], s->lanes[1] + at, channels, count, s->slope[0]);
            weigh_keys(s, p.queries + begin, count);
            tess_lanes_add(s->rows[0], s->slope[0], channels, count, one, s->sum[0] + at);
            tess_lanes_add(s->rows[1], s->weight[0], channels, count, one, s->sum[1] + at);
        }
    }
    store_lanes(job, &p, p.head.key, s->sum[0]);
    store_lanes(job, &p, p.head.value, s->sum[1]);
}

static void grad_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    (void)state, (void)stream;
    tess_pool *pool = tess_cpu_of(device)->pool;
    grad_job job = job_of(op, buffers);
    const uintptr_t at = (uintptr_t)buffers->workspace;
    job.queries = (query_state *)(at + (64 - at % 64) % 64);
    job.scratch = (char *)job.queries + queries_bytes(&job);
    const int64_t items = op->in[0].n * op->attention.heads * job.items;
    tess_pool_run(pool, items, query_item, &job);
    tess_pool_run(pool, items, key_item, &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_gradients_refuses_fast(device, op, op->kind == TESS_OP_ATTENTION_GRAD, why);
}

const tess_kernel tess_cpu_attention_grad = {
    .name = "attention gradient", .refuses = refuses, .needs = grad_needs, .run = grad_run};
