/* statistics_fit.c: the passes of phase 1, and the readings of an image whose nodes are fitted for it alone. Both gather at
 * the taps of one pass and then set the parameters of the nodes that the pass serves, in their order. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "tensor/moments.h"
#include "train/statistics/statistics_impl.h"

typedef tess_statistics_pass pass;

enum { BY_MOMENTS = TESS_NEED_MEAN | TESS_NEED_COVARIANCE | TESS_NEED_RANGE };

static pass pass_of(const tess_spectral_plan *plan, tess_node_scope scope, int number)
{
    pass p = {.scope = scope, .number = number, .scores = -1};
    for (int t = 0; t < plan->taps; t++) {
        const tess_tap *tap = &plan->tap[t];
        if (tap->scope != scope || number < tap->first || number > tap->last)
            continue;
        if (tess_tap_of_scores(tap))
            p.scores = t;
        else
            p.tap[p.count++] = t;
    }
    return p;
}

static bool with_covariance(const tess_statistics *s, int t)
{
    return tess_tap_of_scores(&s->plan->tap[t]) || (s->plan->tap[t].needs & TESS_NEED_COVARIANCE);
}

static double rate_of(const tess_spectral_plan *plan)
{
    const int decider = tess_pipeline_kind(&plan->pipeline, TESS_NODE_FALSE_ALARM);
    return decider < 0 ? 0.5 : plan->pipeline.nodes[decider].values[TESS_FALSE_ALARM_RATE];
}

static void clear_tap(tess_statistics *s, int t)
{
    const tess_tap *tap = &s->plan->tap[t];
    tess_device *device = s->stage.settings.device;
    const int channels = tess_spectral_gives(s->plan, tap->at);
    const bool covariance = with_covariance(s, t);
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
        TESS_TRY(tess_pixel_stage_moments(stage, there, 0, stage->pixels, channels, with_covariance(s, t),
                                          s->gathered[t], error));
    if (p->number == tap->first && (tap->needs & TESS_NEED_CHANNEL_RANGES))
        add_ranges(s, t, on_host, stage->pixels, channels);
    if (tap->needs & TESS_NEED_MEDIANS)
        tess_order_add(&s->order[t], on_host, stage->pixels, NULL);
    return TESS_OK;
}

/* Moments of one channel, on the host: mean first, so that no digits are lost. */
static tess_status add_scores(void *user, int64_t image, int64_t first_row, int64_t rows, const float *scores,
                              tess_error *error)
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
                tess_statistics_round_begin(s, p->tap[i], with_covariance(s, p->tap[i]));
        tess_status status = add_next(s, p, &more, error);
        if (status == TESS_OK) /* all ranks keep the moments */
            status = tess_stop_check(s->stage.settings.stop, error);
        for (int i = 0; i < p->count; i++)
            if (adds_moments(s, p, p->tap[i]))
                TESS_TRY(status = tess_statistics_round_end(s, p->tap[i], with_covariance(s, p->tap[i]),
                                                            round, status, error));
        TESS_TRY(tess_dist_agree(s->dist, status, error));
    }
    for (int i = 0; i < p->count; i++) {
        const int t = p->tap[i], channels = tess_spectral_gives(s->plan, s->plan->tap[t].at);
        if (adds_moments(s, p, t))
            device->memory->copy(device, s->gathered[t], s->at.moments[t],
                                 tess_moments_values(channels, with_covariance(s, t)) * sizeof(double), NULL);
    }
    return tess_dist_agree(s->dist, device->streams->sync(device, NULL, error), error);
}

/* Images [image, end) of the set. */
static tess_status gather(tess_statistics *s, const tess_pixel_set *set, int64_t image, int64_t end,
                          const pass *p, tess_error *error)
{
    const tess_pixel_walk walk = tess_statistics_walk(s, set, image, end);
    if (!p->count)
        return TESS_OK;
    TESS_TRY(tess_statistics_agree(s, tess_pixel_stage_begin(&s->stage, &walk, error), error));
    if (tess_statistics_ranks(s) > 1)
        return gather_rounds(s, p, error);
    for (bool more = true; more;)
        TESS_TRY(add_next(s, p, &more, error));
    return TESS_OK;
}

static void make_paths(tess_statistics *s, const pass *p)
{
    for (int i = 0; i < p->count; i++)
        tess_path_make(s->state, s->plan->tap[p->tap[i]].at, s->at.path[p->tap[i]], s->at.work,
                       &s->paths[p->tap[i]]);
}

/* Copies what the pass gathered to the host, and sets the parameters of the nodes that are known now. */
static tess_status finish(tess_statistics *s, const pass *p, tess_error *error)
{
    tess_device *device = s->stage.settings.device;
    TESS_TRY(tess_statistics_share_pass(s, p, error));
    for (int i = 0; i < p->count; i++) {
        const int t = p->tap[i], channels = tess_spectral_gives(s->plan, s->plan->tap[t].at);
        device->memory->copy(device, s->at.moments[t], s->gathered[t],
                             tess_moments_values(channels, with_covariance(s, t)) * sizeof(double), NULL);
        if (s->plan->tap[t].needs & TESS_NEED_MEDIANS)
            tess_order_next(&s->order[t]);
    }
    TESS_TRY(device->streams->sync(device, NULL, error));
    TESS_TRY(tess_stop_check(s->stage.settings.stop, error));
    if (p->scores >= 0 && (s->plan->tap[p->scores].needs & TESS_NEED_SCORE_ORDER))
        tess_order_next(&s->order[p->scores]);
    const double start = tess_clock();
    for (int i = 0; i < s->plan->pipeline.count; i++) {
        const int t = s->plan->tap_of[i];
        if (t < 0 || s->plan->tap[t].scope != p->scope)
            continue;
        const bool trims = s->plan->trim_tap >= 0 && i == tess_pipeline_score(&s->plan->pipeline);
        s->trimmed = trims && p->number > s->plan->tap[t].last;
        if (s->plan->known[i] == p->number ||
            (trims && p->number >= s->plan->tap[t].last && p->number < s->plan->known[i]))
            TESS_TRY(tess_statistics_fit_node(s, i, error));
    }
    s->solve_seconds += tess_clock() - start;
    s->solves++;
    s->factor_known = false;
    return TESS_OK;
}

static tess_status begin(tess_statistics *s, const pass *p, tess_error *error)
{
    for (int i = 0; i < p->count; i++) {
        const tess_tap *tap = &s->plan->tap[p->tap[i]];
        if (tap->first == p->number || (tap->needs & TESS_NEED_TRIMMED))
            clear_tap(s, p->tap[i]);
        if (tap->needs & TESS_NEED_TRIMMED)
            TESS_TRY(tess_statistics_make_factor(s, error));
    }
    if (p->scores >= 0 && s->plan->tap[p->scores].first == p->number)
        clear_tap(s, p->scores);
    return TESS_OK;
}

tess_status tess_statistics_fit_image(tess_statistics *s, const tess_pixel_set *set, int64_t image, int node,
                                      tess_error *error)
{
    const int readings = tess_spectral_readings_at(s->plan, node);
    for (int r = 1; r <= readings; r++) {
        const pass p = pass_of(s->plan, TESS_SCOPE_IMAGE, r);
        TESS_TRY(tess_statistics_agree(s, begin(s, &p, error), error));
        make_paths(s, &p);
        TESS_TRY(gather(s, set, image, image + 1, &p, error));
        TESS_TRY(tess_statistics_agree(s, finish(s, &p, error), error));
    }
    return TESS_OK;
}

/* The place of a pass that needs the most readings of an image. */
static int deepest(const tess_spectral_plan *plan, const pass *p)
{
    int node = TESS_NODE_DATA;
    for (int i = 0; i < p->count; i++)
        if (tess_spectral_readings_at(plan, plan->tap[p->tap[i]].at) > tess_spectral_readings_at(plan, node))
            node = plan->tap[p->tap[i]].at;
    return node;
}

tess_status tess_statistics_fit_images(tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                       int64_t end, int node, tess_error *error)
{
    tess_status status = TESS_OK;
    if (end == image + 1 && tess_statistics_together(s, set, image, end) == 1)
        return tess_statistics_fit_image(s, set, image, node, error);
    const int64_t own = tess_statistics_own_image(s, image, end);
    s->own = true;
    if (own >= 0)
        status = tess_statistics_fit_image(s, set, own, node, error);
    s->own = false;
    return tess_statistics_agree(s, status, error);
}

/* The images one after another, or one on each rank at a time: something is fitted for each, or they are scored. */
static tess_status gather_each(tess_statistics *s, const tess_pixel_set *set, const pass *p, int node,
                               tess_error *error)
{
    const int64_t step = tess_statistics_together(s, set, 0, set->images);
    for (int64_t image = 0; image < set->images; image += step) {
        const int64_t end = tess_min_i64(image + step, set->images);
        if (p->count)
            TESS_TRY(tess_statistics_fit_images(s, set, image, end, node, error));
        make_paths(s, p);
        TESS_TRY(gather(s, set, image, end, p, error));
        const tess_score_task task = {.set = set, .image = image, .end = end, .sink = add_scores, .user = s};
        if (p->scores >= 0)
            TESS_TRY(tess_statistics_run_scores(s, &task, error));
    }
    return TESS_OK;
}

tess_status tess_statistics_fit(tess_statistics *s, const tess_pixel_set *set, tess_error *error)
{
    for (int number = 1; number <= s->plan->passes; number++) {
        const pass p = pass_of(s->plan, TESS_SCOPE_SET, number);
        const int node = deepest(s->plan, &p);
        TESS_TRY(tess_statistics_agree(s, begin(s, &p, error), error));
        make_paths(s, &p);
        TESS_TRY(tess_spectral_readings_at(s->plan, node) == 0 && p.scores < 0
                     ? gather(s, set, 0, set->images, &p, error)
                     : gather_each(s, set, &p, node, error));
        TESS_TRY(tess_statistics_agree(s, finish(s, &p, error), error));
        if (number == 1 && p.count)
            s->pixels = (int64_t)s->at.moments[p.tap[0]][TESS_MOMENTS_COUNT];
    }
    return tess_statistics_share_state(s, set, error);
}

tess_status tess_statistics_calibrate(tess_statistics *s, const tess_pixel_set *set, tess_error *error)
{
    const int node = tess_pipeline_kind(&s->plan->pipeline, TESS_NODE_FALSE_ALARM);
    if (node < 0)
        return TESS_OK;
    const int t = s->plan->tap_of[node];
    s->factor_known = false;
    for (int number = s->plan->tap[t].first; number <= s->plan->tap[t].last; number++) {
        const pass p = {.scope = TESS_SCOPE_SET, .number = number, .scores = t};
        TESS_TRY(tess_statistics_agree(s, begin(s, &p, error), error));
        const tess_score_task task = {.set = set, .end = set->images, .sink = add_scores, .user = s};
        TESS_TRY(tess_statistics_run_scores(s, &task, error));
        TESS_TRY(tess_statistics_share_pass(s, &p, error));
        TESS_TRY(tess_statistics_agree(s, tess_stop_check(s->stage.settings.stop, error), error));
        tess_order_next(&s->order[t]);
    }
    return tess_statistics_fit_node(s, node, error);
}
