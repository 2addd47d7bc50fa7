/* statistics_gather.c: what a pass over pixels gathers at its taps: moments on the device, ranges, medians and moments of
 * scores on the host. */
#include <math.h>

#include "tensor/moments.h"
#include "train/statistics/statistics_impl.h"

typedef tess_statistics_pass pass;

enum { BY_MOMENTS = TESS_NEED_MEAN | TESS_NEED_COVARIANCE | TESS_NEED_RANGE };

static double rate_of(const tess_spectral_plan *plan)
{
    const int decider = tess_pipeline_kind(&plan->pipeline, TESS_NODE_FALSE_ALARM);
    return decider < 0 ? 0.5 : plan->pipeline.nodes[decider].values[TESS_FALSE_ALARM_RATE];
}

void tess_statistics_clear_tap(tess_statistics *s, int t)
{
    const tess_tap *tap = &s->plan->tap[t];
    tess_device *device = s->stage.settings.device;
    const int channels = tess_spectral_gives(s->plan, tap->at);
    const bool covariance = tess_tap_covariance(&s->plan->tap[t]);
    tess_moments_clear(s->at.moments[t], channels, covariance);
    if (!tess_tap_of_scores(tap))
        device->memory->copy(device, s->gathered[t], s->at.moments[t],
                             tess_moments_values(channels, covariance) * sizeof(double), NULL);
    for (int c = 0; c < channels && (tap->needs & TESS_NEED_CHANNEL_RANGES); c++) {
        s->at.ranges[t][c] = INFINITY;
        s->at.ranges[t][channels + c] = -INFINITY;
    }
    if (tap->needs & TESS_NEED_MEDIANS)
        tess_order_begin(&s->order[t], TESS_ORDER_MEDIAN, channels, 0.5, s->at.orders[t]);
    if (tap->needs & TESS_NEED_SCORE_ORDER)
        tess_order_begin(&s->order[t], TESS_ORDER_QUANTILE, 1, 1 - rate_of(s->plan), s->at.orders[t]);
}

static void add_ranges(tess_statistics *s, int t, const float *values, int64_t pixels, int channels)
{
    double *least = s->at.ranges[t], *largest = least + channels;
    for (int64_t p = 0; p < pixels; p++) {
        const float *v = values + p * channels;
        bool finite = true;
        for (int c = 0; c < channels && finite; c++)
            finite = isfinite(v[c]) != 0;
        for (int c = 0; c < channels && finite; c++) {
            least[c] = fmin(least[c], (double)v[c]);
            largest[c] = fmax(largest[c], (double)v[c]);
        }
    }
}

/* The pixels of the block whose score is not far above the mean, which is the number of directions. */
static tess_status add_trimmed(tess_statistics *s, int t, const float *there, tess_error *error)
{
    tess_pixel_stage *stage = &s->stage;
    const tess_node *node = &s->plan->pipeline.nodes[tess_pipeline_score(&s->plan->pipeline)];
    const int channels = tess_spectral_gives(s->plan, s->plan->tap[t].at);
    const double limit = node->values[TESS_RX_TRIM] * tess_statistics_factor_rows(s);
    TESS_TRY(tess_pixel_stage_score(stage, there, 0, stage->pixels, channels, tess_statistics_factor_rows(s),
                                    stage->scores.data, error));
    return tess_pixel_stage_trimmed(stage, there, channels, limit, s->gathered[t], error);
}

/* The loaded block at one tap. */
static tess_status add_block(tess_statistics *s, const pass *p, int t, tess_error *error)
{
    const tess_tap *tap = &s->plan->tap[t];
    const int channels = tess_spectral_gives(s->plan, tap->at);
    tess_pixel_stage *stage = &s->stage;
    const float *there = tess_pixel_stage_behind(stage, &s->paths[t]);
    const float *on_host = s->paths[t].count ? stage->behind.data : stage->values.data;
    if (tap->needs & TESS_NEED_TRIMMED)
        return add_trimmed(s, t, there, error);
    if (p->number == tap->first && (tap->needs & BY_MOMENTS))
        TESS_TRY(tess_pixel_stage_moments(stage, there, 0, stage->pixels, channels,
                                          tess_tap_covariance(&s->plan->tap[t]), s->gathered[t], error));
    if (p->number == tap->first && (tap->needs & TESS_NEED_CHANNEL_RANGES))
        add_ranges(s, t, on_host, stage->pixels, channels);
    if (tap->needs & TESS_NEED_MEDIANS)
        tess_order_add(&s->order[t], on_host, stage->pixels, NULL);
    return TESS_OK;
}

/* The mean first, so that no digits are lost. */
tess_status tess_statistics_add_scores(void *user, int64_t image, int64_t first_row, int64_t rows,
                                       const float *scores, tess_error *error)
{
    tess_statistics *s = user;
    const int t = s->plan->tap_of[tess_pipeline_kind(&s->plan->pipeline, TESS_NODE_SCORE_TO_LOGIT) >= 0
                                      ? tess_pipeline_kind(&s->plan->pipeline, TESS_NODE_SCORE_TO_LOGIT)
                                      : tess_pipeline_kind(&s->plan->pipeline, TESS_NODE_FALSE_ALARM)];
    const int64_t pixels = rows * s->stage.set->image[image].width;
    double m[TESS_MOMENTS_MEAN + 2];
    (void)first_row, (void)error;
    tess_moments_clear(m, 1, true);
    for (int64_t p = 0; p < pixels; p++) {
        if (!isfinite(scores[p]))
            continue;
        m[TESS_MOMENTS_COUNT]++;
        m[TESS_MOMENTS_MEAN] += (double)scores[p];
        m[TESS_MOMENTS_LEAST] = fmin(m[TESS_MOMENTS_LEAST], (double)scores[p]);
        m[TESS_MOMENTS_LARGEST] = fmax(m[TESS_MOMENTS_LARGEST], (double)scores[p]);
    }
    if (m[TESS_MOMENTS_COUNT] > 0)
        m[TESS_MOMENTS_MEAN] /= m[TESS_MOMENTS_COUNT];
    for (int64_t p = 0; p < pixels; p++) {
        const double far = isfinite(scores[p]) ? (double)scores[p] - m[TESS_MOMENTS_MEAN] : 0;
        m[tess_moments_second(1)] += far * far;
    }
    const bool ordered = s->plan->tap[t].needs & TESS_NEED_SCORE_ORDER;
    if (!ordered || s->order[t].digit == 0) /* the other readings only find the quantile */
        tess_moments_merge(s->at.moments[t], m, 1, true);
    if (ordered)
        tess_order_add(&s->order[t], scores, pixels, NULL);
    return TESS_OK;
}

/* Whether the pass adds to the moments of the tap. */
static bool adds_moments(const tess_statistics *s, const pass *p, int t)
{
    const tess_tap *tap = &s->plan->tap[t];
    return (tap->needs & TESS_NEED_TRIMMED) || (p->number == tap->first && (tap->needs & BY_MOMENTS));
}

/* The next block of the walk at all taps; *more is false behind the last one. */
static tess_status add_next(tess_statistics *s, const pass *p, bool *more, tess_error *error)
{
    const tess_pixel_block *block;
    TESS_TRY(tess_pixel_stage_next(&s->stage, &block, error));
    *more = block != NULL;
    for (int i = 0; block && i < p->count; i++)
        TESS_TRY(add_block(s, p, p->tap[i], error));
    if (block)
        tess_stop_add(s->stage.settings.stop, s->stage.pixels);
    return TESS_OK;
}

/* A round of blocks, one of each rank, at a time. */
static tess_status gather_rounds(tess_statistics *s, const pass *p, tess_error *error)
{
    tess_device *device = s->stage.settings.device;
    const int64_t rounds = tess_statistics_rounds(s);
    bool more = true;
    for (int64_t round = 0; round < rounds; round++) {
        for (int i = 0; i < p->count; i++)
            if (adds_moments(s, p, p->tap[i]))
                tess_statistics_round_begin(s, p->tap[i], tess_tap_covariance(&s->plan->tap[p->tap[i]]));
        tess_status status = add_next(s, p, &more, error);
        if (status == TESS_OK) /* all ranks keep the moments */
            status = tess_stop_check(s->stage.settings.stop, error);
        for (int i = 0; i < p->count; i++)
            if (adds_moments(s, p, p->tap[i]))
                TESS_TRY(status = tess_statistics_round_end(s, p->tap[i],
                                                            tess_tap_covariance(&s->plan->tap[p->tap[i]]),
                                                            round, status, error));
        TESS_TRY(tess_dist_agree(s->dist, status, error));
    }
    for (int i = 0; i < p->count; i++) {
        const int t = p->tap[i], channels = tess_spectral_gives(s->plan, s->plan->tap[t].at);
        if (adds_moments(s, p, t))
            device->memory->copy(
                device, s->gathered[t], s->at.moments[t],
                tess_moments_values(channels, tess_tap_covariance(&s->plan->tap[t])) * sizeof(double), NULL);
    }
    return tess_dist_agree(s->dist, device->streams->sync(device, NULL, error), error);
}

tess_status tess_statistics_gather(tess_statistics *s, const tess_pixel_set *set, int64_t image, int64_t end,
                                   const pass *p, tess_error *error)
{
    tess_pixel_walk walk = tess_statistics_walk(s, set, image, end);
    if (!p->count)
        return TESS_OK;
    walk.joins = !s->dist;             /* one rank must give the bits of several */
    for (int i = 0; i < p->count; i++) /* scores have room for a block */
        walk.joins = walk.joins && !(s->plan->tap[p->tap[i]].needs & TESS_NEED_TRIMMED);
    TESS_TRY(tess_statistics_agree(s, tess_pixel_stage_begin(&s->stage, &walk, error), error));
    if (tess_statistics_ranks(s) > 1)
        return gather_rounds(s, p, error);
    for (bool more = true; more;)
        TESS_TRY(add_next(s, p, &more, error));
    return TESS_OK;
}
