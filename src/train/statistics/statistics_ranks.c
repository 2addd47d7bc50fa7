/* statistics_ranks.c: phase 1 and scores that ranks share. Ranks take the blocks in turn. The moments of a round of blocks, one
 * of each rank, go to all ranks, which merge them in the order of blocks, as one rank would: the result has the same bits
 * for any number of ranks. Histograms and ranges are exact in any order. Scores go to rank 0, block by block. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "tensor/moments.h"
#include "train/statistics/statistics_impl.h"

int tess_statistics_ranks(const tess_statistics *s)
{
    return s->dist && !s->own ? s->dist->size : 1;
}

tess_status tess_statistics_agree(tess_statistics *s, tess_status mine, tess_error *error)
{
    return tess_statistics_ranks(s) > 1 ? tess_dist_agree(s->dist, mine, error) : mine;
}

tess_pixel_walk tess_statistics_walk(const tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                     int64_t end)
{
    const int ranks = tess_statistics_ranks(s);
    return (tess_pixel_walk){
        .set = set, .image = image, .end = end, .part = ranks > 1 ? s->dist->rank : 0, .parts = ranks};
}

int64_t tess_statistics_together(const tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                 int64_t end)
{
    const int ranks = tess_statistics_ranks(s);
    const tess_node *score = &s->plan->pipeline.nodes[tess_pipeline_score(&s->plan->pipeline)];
    if (tess_node_scope_of(score) == TESS_SCOPE_STREAM)
        return 1;
    for (int64_t i = image; i < end && ranks > 1; i++)
        if (tess_pixel_stage_rows(&s->stage, &set->image[i]) < set->image[i].height)
            return 1;
    return ranks;
}

int64_t tess_statistics_own_image(const tess_statistics *s, int64_t image, int64_t end)
{
    const int64_t ranks = tess_statistics_ranks(s);
    for (int64_t i = image; i < end; i++)
        if (ranks == 1 || i % ranks == s->dist->rank)
            return i;
    return -1;
}

int64_t tess_statistics_rounds(const tess_statistics *s)
{
    tess_pixel_walk all = s->stage.walk;
    tess_pixel_block block;
    all.parts = 0;
    tess_pixel_place place = tess_pixel_walk_begin(&all);
    while (tess_pixel_walk_next(&all, &place, &block))
        continue;
    return tess_ceil_div(place.number, tess_statistics_ranks(s));
}

static size_t values_at(const tess_statistics *s, int t, bool covariance)
{
    return tess_moments_values(tess_spectral_gives(s->plan, s->plan->tap[t].at), covariance);
}

void tess_statistics_round_begin(tess_statistics *s, int t, bool covariance)
{
    tess_device *device = s->stage.settings.device;
    tess_moments_clear(s->at.round, tess_spectral_gives(s->plan, s->plan->tap[t].at), covariance);
    device->memory->copy(device, s->gathered[t], s->at.round, values_at(s, t, covariance) * sizeof(double),
                         NULL);
}

tess_status tess_statistics_round_end(tess_statistics *s, int t, bool covariance, int64_t round,
                                      tess_status mine, tess_error *error)
{
    tess_device *device = s->stage.settings.device;
    const int ranks = tess_statistics_ranks(s), channels = tess_spectral_gives(s->plan, s->plan->tap[t].at);
    const size_t values = values_at(s, t, covariance);
    double *all = s->at.round + values;
    if (mine == TESS_OK) {
        device->memory->copy(device, s->at.round, s->gathered[t], values * sizeof(double), NULL);
        mine = device->streams->sync(device, NULL, error);
    }
    TESS_TRY(tess_dist_agree(s->dist, mine, error));
    TESS_TRY(tess_dist_gather(s->dist, s->at.round, values * sizeof(double), all, error));
    for (int64_t i = 0; i < ranks; i++) {
        const int owner = tess_pixel_walk_part(&s->stage.walk, round * ranks + i, ranks);
        tess_moments_merge(s->at.moments[t], all + (size_t)owner * values, channels, covariance);
    }
    return TESS_OK;
}

/* Counts are whole numbers below 2^53: their sum as doubles is exact. */
static tess_status sum_counts(tess_dist *dist, uint64_t *counts, int64_t count, tess_error *error)
{
    double *sums = (double *)(void *)counts; /* in the same memory */
    for (int64_t i = 0; i < count; i++) {
        uint64_t whole;
        memcpy(&whole, &counts[i], sizeof whole);
        const double value = (double)whole;
        memcpy(&sums[i], &value, sizeof value);
    }
    TESS_TRY(tess_dist_sum_f64(dist, sums, count, error));
    for (int64_t i = 0; i < count; i++) {
        double value;
        memcpy(&value, &sums[i], sizeof value);
        const uint64_t whole = (uint64_t)value;
        memcpy(&counts[i], &whole, sizeof whole);
    }
    return TESS_OK;
}

static tess_status share_order(tess_statistics *s, int t, tess_error *error)
{
    tess_order *order = &s->order[t];
    if (order->digit == 0)
        TESS_TRY(sum_counts(s->dist, &order->count, 1, error));
    return sum_counts(s->dist, order->histograms, tess_order_counts(order), error);
}

static tess_status share_ranges(tess_statistics *s, int t, tess_error *error)
{
    const size_t channels = (size_t)tess_spectral_gives(s->plan, s->plan->tap[t].at);
    double *all = s->at.round, *least = s->at.ranges[t], *largest = least + channels;
    TESS_TRY(tess_dist_gather(s->dist, least, 2 * channels * sizeof(double), all, error));
    for (int r = 0; r < s->dist->size; r++, all += 2 * channels)
        for (size_t c = 0; c < channels; c++) {
            least[c] = fmin(least[c], all[c]);
            largest[c] = fmax(largest[c], all[channels + c]);
        }
    return TESS_OK;
}

/* Rank 0 has seen all scores. */
static tess_status share_scores(tess_statistics *s, int t, tess_error *error)
{
    tess_order *order = &s->order[t];
    TESS_TRY(
        tess_dist_broadcast(s->dist, 0, s->at.moments[t], values_at(s, t, true) * sizeof(double), error));
    if (!(s->plan->tap[t].needs & TESS_NEED_SCORE_ORDER))
        return TESS_OK;
    TESS_TRY(tess_dist_broadcast(s->dist, 0, &order->count, sizeof order->count, error));
    return tess_dist_broadcast(s->dist, 0, order->histograms,
                               (size_t)tess_order_counts(order) * sizeof *order->histograms, error);
}

tess_status tess_statistics_share_pass(tess_statistics *s, const tess_statistics_pass *p, tess_error *error)
{
    if (tess_statistics_ranks(s) == 1)
        return TESS_OK;
    for (int i = 0; i < p->count; i++) {
        const int t = p->tap[i];
        if (s->plan->tap[t].needs & TESS_NEED_MEDIANS)
            TESS_TRY(share_order(s, t, error));
        if ((s->plan->tap[t].needs & TESS_NEED_CHANNEL_RANGES) && p->number == s->plan->tap[t].first)
            TESS_TRY(share_ranges(s, t, error));
    }
    return p->scores >= 0 ? share_scores(s, p->scores, error) : TESS_OK;
}

tess_status tess_statistics_share_state(tess_statistics *s, const tess_pixel_set *set, tess_error *error)
{
    if (tess_statistics_ranks(s) == 1)
        return TESS_OK;
    const int owner = (int)((set->images - 1) % s->dist->size);
    return tess_dist_broadcast(s->dist, owner, s->state->block.data, tess_spectral_state_bytes(s->plan),
                               error);
}

/* One block to rank 0. Its scores are at `mine` on the rank that has it. */
static tess_status send_block(tess_statistics *s, const tess_score_task *task, const tess_pixel_block *block,
                              int owner, const float *mine, tess_status *sunk, tess_error *error)
{
    const int rank = s->dist->rank;
    const int64_t pixels = block->rows.rows * task->set->image[block->image].width;
    const size_t bytes = (size_t)pixels * sizeof(float);
    tess_error other;
    if (owner > 0 && (rank == 0 || rank == owner)) {
        const tess_dist_transfer transfer = {.peer = rank == 0 ? owner : 0,
                                             .send = rank == 0 ? NULL : mine,
                                             .send_bytes = rank == 0 ? 0 : bytes,
                                             .receive = rank == 0 ? s->received.data : NULL,
                                             .receive_bytes = rank == 0 ? bytes : 0};
        tess_error *to = *sunk == TESS_OK ? error : &other;
        TESS_TRY(tess_dist_exchange_begin(s->exchange, &transfer, 1, to));
        TESS_TRY(tess_dist_exchange_end(s->exchange, to));
    }
    if (rank == 0 && *sunk == TESS_OK) /* after a failure it still receives what the others send */
        *sunk = task->sink(task->user, block->image, block->rows.first, block->rows.rows,
                           owner > 0 ? s->received.data : mine, error);
    return TESS_OK;
}

tess_status tess_statistics_score_shared(tess_statistics *s, const tess_score_task *task,
                                         tess_score_block_fn compute, tess_status begun, tess_error *error)
{
    const int ranks = tess_statistics_ranks(s);
    tess_pixel_walk all = s->stage.walk;
    tess_pixel_block block;
    all.parts = 0;
    tess_pixel_place place = tess_pixel_walk_begin(&all);
    tess_status status = tess_dist_agree(s->dist, begun, error);
    for (bool more = true; more && status == TESS_OK;) {
        const float *mine = NULL;
        status = tess_dist_agree(s->dist, compute(s, task, &mine, error), error);
        tess_status sunk = TESS_OK;
        for (int i = 0; i < ranks && status == TESS_OK; i++) {
            const int owner = tess_pixel_walk_part(&all, place.number, ranks);
            more = tess_pixel_walk_next(&all, &place, &block);
            if (!more)
                break;
            status = send_block(s, task, &block, owner, mine, &sunk, error);
        }
        more = more && place.image < all.end;
        if (status == TESS_OK)
            status = tess_dist_agree(s->dist, sunk, error);
    }
    return status;
}
