/* statistics_fit.c: the passes of phase 1, and the readings of an image whose nodes are fitted for it alone. Both gather at
 * the taps of one pass (statistics_gather.c) and then set the parameters of the nodes that the pass serves, in their order. */

#include "base/checked.h"
#include "base/clock.h"
#include "tensor/moments.h"
#include "train/statistics/statistics_impl.h"

typedef tess_statistics_pass pass;

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
        device->memory->copy(
            device, s->at.moments[t], s->gathered[t],
            tess_moments_values(channels, tess_tap_covariance(&s->plan->tap[t])) * sizeof(double), NULL);
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
            tess_statistics_clear_tap(s, p->tap[i]);
        if (tap->needs & TESS_NEED_TRIMMED)
            TESS_TRY(tess_statistics_make_factor(s, error));
    }
    if (p->scores >= 0 && s->plan->tap[p->scores].first == p->number)
        tess_statistics_clear_tap(s, p->scores);
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
        TESS_TRY(tess_statistics_gather(s, set, image, image + 1, &p, error));
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
        TESS_TRY(tess_statistics_gather(s, set, image, end, p, error));
        const tess_score_task task = {
            .set = set, .image = image, .end = end, .sink = tess_statistics_add_scores, .user = s};
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
                     ? tess_statistics_gather(s, set, 0, set->images, &p, error)
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
        const tess_score_task task = {
            .set = set, .end = set->images, .sink = tess_statistics_add_scores, .user = s};
        TESS_TRY(tess_statistics_run_scores(s, &task, error));
        TESS_TRY(tess_statistics_share_pass(s, &p, error));
        TESS_TRY(tess_statistics_agree(s, tess_stop_check(s->stage.settings.stop, error), error));
        tess_order_next(&s->order[t]);
    }
    return tess_statistics_fit_node(s, node, error);
}
