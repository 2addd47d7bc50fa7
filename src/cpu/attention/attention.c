/* Attention without storing the matrix of pixels by pixels. Keys are processed in blocks. Each query keeps the
 * largest score so far, the sum of the exponentials and the weighted sum of the values, and rescales them when
 * the largest score grows (Milakov and Gimelshein 2018, Rabe and Staats 2021).
 *
 * The lanes of a vector are queries: keys and values are then scalars for any head size, and no sum crosses
 * lanes. Each query processes the keys in the same order and the same blocks, so that its result depends
 * neither on the threads nor on its neighbours. Scores and sums are fp32, and scores are exponents of two. */
#include "cpu/attention/attention.h"

#include <float.h>
#include <math.h>

#include "base/checked.h"
#include "cpu/attention/lanes.h"
#include "cpu/core/activation.h"
#include "op/attention.h"

enum {
    LANES = TESS_LANES,
    TEAMS = 4,
    QUERIES = TEAMS * LANES,
    KEYS = 64
}; /* queries per item; keys per block, which all its teams read */

/* The scratch of a thread. */
typedef struct scratch {
    float *query, *sum;                     /* [team][channel][lane] */
    float *key, *value;                     /* [key][channel] */
    _Alignas(64) float scores[KEYS][LANES]; /* scores of one team */
    _Alignas(64) float most[TEAMS][LANES], total[TEAMS][LANES];
} scratch;

typedef struct attention_job {
    const tess_op *op;
    const tess_op_buffers *buffers;
    int64_t pixels, items; /* pixels per image; items per head */
    size_t thread_bytes;
} attention_job;

static size_t thread_bytes(const tess_op *op)
{
    const size_t head = (size_t)(op->out[0].c / op->attention.heads);
    return tess_align_size(sizeof(scratch), 64) + 2 * head * (QUERIES + KEYS) * sizeof(float) + 64;
}

static scratch *scratch_of(const attention_job *job, int thread, int64_t head)
{
    const uintptr_t at = (uintptr_t)job->buffers->workspace + (size_t)thread * job->thread_bytes;
    scratch *s = (scratch *)(at + (64 - at % 64) % 64);
    s->query = (float *)((char *)s + tess_align_size(sizeof *s, 64));
    s->sum = s->query + head * QUERIES;
    s->key = s->sum + head * QUERIES;
    s->value = s->key + head * KEYS;
    return s;
}

static void attention_needs(tess_device *device, const tess_op *op, tess_op_needs *needs)
{
    *needs = (tess_op_needs){.block = 1};
    needs->workspace = thread_bytes(op) * (size_t)tess_pool_threads(tess_cpu_of(device)->pool);
}

/* Replaces scores by powers of two; `rescale`: factor for the sums of earlier blocks. A function of its own, so that its
 * constants stay in registers. */
static __attribute__((noinline)) void exponentials(scratch *s, int team, int64_t keys, float rescale[LANES])
{
    tess_lane_vec *scores = (tess_lane_vec *)s->scores[0], *before = (tess_lane_vec *)s->most[team],
                  *total = (tess_lane_vec *)s->total[team], most[TESS_LANE_VECTORS], sum[TESS_LANE_VECTORS];
    for (int i = 0; i < TESS_LANE_VECTORS; i++)
        most[i] = before[i];
    for (int64_t k = 0; k < keys; k++)
        for (int i = 0; i < TESS_LANE_VECTORS; i++)
            most[i] = tess_lanes_larger(most[i], scores[k * TESS_LANE_VECTORS + i]);
    for (int i = 0; i < TESS_LANE_VECTORS; i++) {
        const tess_lane_vec factor = tess_lanes_exp2(before[i] - most[i]);
        ((tess_lane_vec *)rescale)[i] = factor;
        before[i] = most[i];
        sum[i] = total[i] * factor;
    }
    for (int64_t k = 0; k < keys; k++)
        for (int i = 0; i < TESS_LANE_VECTORS; i++) {
            tess_lane_vec *at = &scores[k * TESS_LANE_VECTORS + i];
            *at = tess_lanes_exp2(*at - most[i]);
            sum[i] += *at;
        }
    for (int i = 0; i < TESS_LANE_VECTORS; i++)
        total[i] = sum[i];
}

/* Lanes beyond the last pixel repeat it; their results are not used. */
static void load_queries(const attention_job *job, const tess_head *head, int64_t n, int64_t first,
                         scratch *s)
{
    const tess_tensor *in = &job->op->in[0];
    const float scale = (float)(1 / (log(2) * sqrt((double)head->channels))); /* exp(x) = 2^(x / log 2) */
    for (int64_t q = 0; q < QUERIES; q++) {
        const int64_t at = tess_lanes_place(in, n, tess_min_i64(first + q, job->pixels - 1)) + head->query;
        float *to = s->query + q / LANES * head->channels * LANES + q % LANES;
        for (int64_t c = 0; c < head->channels; c++) {
            float value;
            tess_cpu_load(in->dtype, job->buffers->in[0], at + c, 1, &value);
            to[c * LANES] = value * scale;
            s->sum[(q / LANES * head->channels + c) * LANES + q % LANES] = 0;
        }
        s->most[q / LANES][q % LANES] = -FLT_MAX;
        s->total[q / LANES][q % LANES] = 0;
    }
}

static void store_results(const attention_job *job, const tess_head *head, int64_t n, int64_t first,
                          const scratch *s)
{
    const tess_tensor *out = &job->op->out[0];
    for (int64_t q = 0; q < QUERIES && first + q < job->pixels; q++) {
        const int64_t at = tess_lanes_place(out, n, first + q) + head->out;
        const float *sum = s->sum + q / LANES * head->channels * LANES + q % LANES,
                    total = s->total[q / LANES][q % LANES];
        for (int64_t c = 0; c < head->channels; c++) {
            const float value = sum[c * LANES] / total;
            tess_cpu_store(out->dtype, job->buffers->out[0], at + c, 1, &value);
        }
    }
}

/* An item is QUERIES pixels of one head of one image. */
static void attention_item(void *arg, int64_t item, int thread)
{
    const attention_job *job = arg;
    const tess_tensor *in = &job->op->in[0];
    const int64_t heads = job->op->attention.heads, n = item / job->items / heads,
                  first = item % job->items * QUERIES;
    const tess_head head = tess_head_of(job->op, item / job->items % heads);
    scratch *s = scratch_of(job, thread, head.channels);
    _Alignas(64) float rescale[LANES];
    load_queries(job, &head, n, first, s);
    for (int64_t begin = 0; begin < job->pixels; begin += KEYS) {
        const int64_t keys = tess_min_i64(KEYS, job->pixels - begin);
        for (int64_t k = 0; k < keys; k++) {
            const int64_t at = tess_lanes_place(in, n, begin + k);
            tess_cpu_load(in->dtype, job->buffers->in[0], at + head.key, head.channels,
                          s->key + k * head.channels);
            tess_cpu_load(in->dtype, job->buffers->in[0], at + head.value, head.channels,
                          s->value + k * head.channels);
        }
        for (int team = 0; team < TEAMS && first + team * LANES < job->pixels; team++) {
            const int64_t at = team * head.channels * LANES;
            tess_lanes_scores(s->key, s->query + at, head.channels, keys, s->scores[0]);
            exponentials(s, team, keys, rescale);
            tess_lanes_add(s->value, s->scores[0], head.channels, keys, rescale, s->sum + at);
        }
    }
    store_results(job, &head, n, first, s);
}

static void attention_run(tess_device *device, const tess_op *op, void *state, const tess_op_buffers *buffers,
                          tess_stream *stream)
{
    (void)state, (void)stream;
    const int64_t pixels = op->in[0].d * op->in[0].h * op->in[0].w;
    attention_job job = {op, buffers, pixels, tess_ceil_div(pixels, QUERIES), thread_bytes(op)};
    tess_pool_run(tess_cpu_of(device)->pool, op->in[0].n * op->attention.heads * job.items, attention_item,
                  &job);
}

static tess_status refuses(const tess_device *device, const tess_op *op, tess_error *why)
{
    return tess_cpu_of(device)->f32 ? tess_cpu_attention_refuses(device, op, why)
                                    : tess_kernel_refuse(why, NULL);
}

const tess_kernel tess_cpu_attention = {
    .name = "attention", .refuses = refuses, .needs = attention_needs, .run = attention_run};
