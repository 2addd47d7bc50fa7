#include "train/statistics/decide.h"

#include <math.h>

#include "base/checked.h"
#include "train/statistics/order.h"

enum { PIECE = 1 << 16 };

size_t tess_decide_bytes(void)
{
    return tess_order_bytes(TESS_ORDER_QUANTILE, 1) + PIECE * sizeof(float);
}

/* What is done with each piece of the scores. */
typedef struct visit {
    tess_order *order; /* NULL: sums */
    double above;      /* sum and count of the scores above this */
    double sum;
    int64_t count, valid;
} visit;

static tess_status read_all(const tess_score_reader *reader, float *piece, visit *v, tess_error *error)
{
    for (int64_t first = 0; first < reader->count; first += PIECE) {
        const int64_t count = tess_min_i64(PIECE, reader->count - first);
        TESS_TRY(reader->read(reader->user, first, count, piece, error));
        if (v->order)
            tess_order_add(v->order, piece, count, NULL);
        for (int64_t i = 0; i < count && !v->order; i++) {
            const bool above = (double)piece[i] > v->above;
            v->valid += isfinite(piece[i]) != 0;
            v->count += above;
            v->sum += above ? (double)piece[i] : 0;
        }
    }
    return TESS_OK;
}

static tess_status find(const tess_score_reader *reader, double quantile, void *memory, double *value,
                        tess_error *error)
{
    tess_order order;
    float *piece = memory;
    visit v = {.order = &order};
    tess_order_begin(&order, TESS_ORDER_QUANTILE, 1, quantile, piece + PIECE);
    do
        TESS_TRY(read_all(reader, piece, &v, error));
    while (!tess_order_next(&order));
    *value = tess_order_value(&order, 0);
    return TESS_OK;
}

/* The mean of the ceil(share * n) largest scores: those above the smallest of them, and as many equal to it as are missing. */
static tess_status mean_of_top(const tess_score_reader *reader, double share, void *memory, double *mean,
                               tess_error *error)
{
    visit all = {.above = INFINITY};
    TESS_TRY(read_all(reader, memory, &all, error));
    const double n = (double)all.valid, top = ceil(share * n);
    double smallest;
    *mean = -INFINITY;
    if (all.valid == 0)
        return TESS_OK;
    TESS_TRY(find(reader, n > 1 ? (n - top) / (n - 1) : 0, memory, &smallest, error));
    smallest =
        (double)(float)smallest; /* a whole rank: rounding of the rank must not put it between two scores */
    visit above = {.above = smallest};
    TESS_TRY(read_all(reader, memory, &above, error));
    *mean = (above.sum + (top - (double)above.count) * smallest) / top;
    return TESS_OK;
}

/* The quantile, or infinity where all scores are equal: none of them is unlike the others. */
static tess_status find_outliers(const tess_score_reader *reader, double quantile, void *memory,
                                 double *threshold, tess_error *error)
{
    TESS_TRY(find(reader, quantile, memory, threshold, error));
    visit above = {.above = *threshold};
    TESS_TRY(read_all(reader, memory, &above, error));
    if (above.count > 0)
        return TESS_OK;
    double least;
    TESS_TRY(find(reader, 0, memory, &least, error));
    if (least == *threshold)
        *threshold = INFINITY;
    return TESS_OK;
}

tess_status tess_decide_threshold(const tess_spectral_state *state, const tess_score_reader *scores,
                                  void *memory, double *threshold, tess_error *error)
{
    const tess_pipeline *pipeline = &state->plan->pipeline;
    const int decider = tess_pipeline_decider(pipeline),
              logit = tess_pipeline_kind(pipeline, TESS_NODE_SCORE_TO_LOGIT);
    const double *v = pipeline->nodes[decider].values;
    const tess_node_kind kind = pipeline->nodes[decider].kind;
    if (kind == TESS_NODE_BINARY) { /* sigmoid(score) >= t */
        const double t = v[TESS_BINARY_THRESHOLD];
        *threshold = log(t / (1 - t));
        return TESS_OK;
    }
    if (kind == TESS_NODE_FALSE_ALARM) { /* was found before the logit */
        const double t = state->of[decider][0];
        *threshold = logit < 0 ? t : state->of[logit][0] * (t - state->of[logit][1]);
        *threshold = (double)(float)*threshold;
        return TESS_OK;
    }
    if (kind == TESS_NODE_TWO_STAGE) {
        double mean;
        TESS_TRY(mean_of_top(scores, v[TESS_TWO_STAGE_SHARE], memory, &mean, error));
        if (mean < v[TESS_TWO_STAGE_THRESHOLD]) {
            *threshold = INFINITY;
            return TESS_OK;
        }
    }
    return find_outliers(scores, v[TESS_QUANTILE_QUANTILE], memory, threshold, error);
}
