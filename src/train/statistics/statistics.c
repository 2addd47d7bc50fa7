/* statistics.c: the memory of phase 1 and scoring. */
#include <string.h>

#include "tensor/moments.h"
#include "tensor/symmetric.h"
#include "train/statistics/statistics_impl.h"

static int ranks_of(const tess_pixel_stage_settings *settings)
{
    return settings->dist ? settings->dist->size : 1;
}

/* Takes `count` values of `size` bytes, in whole doubles, and moves on. `base` NULL: only counts. */
static void *take(double *base, size_t *used, size_t count, size_t size)
{
    void *here = base ? base + *used : NULL;
    *used += (count * size + sizeof(double) - 1) / sizeof(double);
    return here;
}

static size_t lay_out(const tess_spectral_plan *plan, int ranks, double *base, tess_statistics_buffers *at)
{
    const size_t c = (size_t)tess_spectral_widest(plan);
    size_t used = 0, most = 0;
    for (int t = 0; t < plan->taps; t++) {
        const tess_tap *tap = &plan->tap[t];
        const bool scores = tess_tap_of_scores(tap);
        const int channels = tess_spectral_gives(plan, tap->at);
        const size_t values = tess_moments_values(channels, scores || (tap->needs & TESS_NEED_COVARIANCE));
        at->moments[t] = take(base, &used, values, sizeof(double));
        most = values > most ? values : most;
        at->path[t] = take(base, &used, scores ? 0 : tess_path_values(plan, tap->at), sizeof(double));
        const bool ranges = tap->needs & TESS_NEED_CHANNEL_RANGES;
        at->ranges[t] = take(base, &used, ranges ? 2 * (size_t)channels : 0, sizeof(double));
        size_t order = 0;
        if (tap->needs & (TESS_NEED_MEDIANS | TESS_NEED_SCORE_ORDER))
            order = tess_order_bytes(scores ? TESS_ORDER_QUANTILE : TESS_ORDER_MEDIAN, channels);
        at->orders[t] = take(base, &used, order, 1);
    }
    at->score_path = take(base, &used, tess_path_values(plan, tess_spectral_score_at(plan)), sizeof(double));
    if (2 * c > most)
        most = 2 * c; /* ranges */
    at->round = take(base, &used, ranks > 1 ? (size_t)(ranks + 1) * most : 0, sizeof(double));
    at->mapped = take(base, &used, tess_moments_values((int)c, true), sizeof(double));
    at->block = take(base, &used, tess_moments_values((int)c, true), sizeof(double));
    at->a = take(base, &used, c * c, sizeof(double));
    at->b = take(base, &used, c, sizeof(double));
    at->square = take(base, &used, c * c, sizeof(double));
    at->values = take(base, &used, c, sizeof(double));
    at->work = take(base, &used,
                    tess_spectral_by_network(plan) ? tess_spectral_network_workspace(plan)
                                                   : tess_spectral_quadratic_workspace(plan),
                    sizeof(double));
    at->centre = take(base, &used, c, sizeof(float));
    at->factor = take(base, &used, c * c, sizeof(float));
    return used;
}

/* The moments in the device's memory. */
static size_t lay_out_device(const tess_spectral_plan *plan, double *base, tess_statistics *s)
{
    size_t used = 0;
    for (int t = 0; t < plan->taps; t++) {
        const tess_tap *tap = &plan->tap[t];
        const bool scores = tess_tap_of_scores(tap);
        const size_t values =
            tess_moments_values(tess_spectral_gives(plan, tap->at), tap->needs & TESS_NEED_COVARIANCE);
        double *here = take(base, &used, scores ? 0 : values, sizeof(double));
        if (s)
            s->gathered[t] = here;
    }
    const int score = tess_pipeline_score(&plan->pipeline);
    const bool stream = tess_node_scope_of(&plan->pipeline.nodes[score]) == TESS_SCOPE_STREAM;
    const int channels = tess_spectral_gives(plan, tess_spectral_score_at(plan));
    double *here = take(base, &used, stream ? tess_moments_values(channels, true) : 0, sizeof(double));
    if (s)
        s->streamed = here;
    return used;
}

tess_status tess_statistics_plan(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                 const tess_pixel_set *set, tess_mem_bytes *bytes, tess_error *error)
{
    tess_pixel_stage_sizes sizes;
    tess_statistics_buffers at;
    tess_device *device = settings->device;
    *bytes = (tess_mem_bytes){{0}};
    TESS_TRY(tess_pixel_stage_plan(settings, plan, set, &sizes, error));
    tess_pixel_stage_bytes(settings, &sizes, bytes);
    bytes->by[TESS_MEM_HOST] +=
        tess_block_granted(lay_out(plan, ranks_of(settings), NULL, &at) * sizeof(double));
    if (ranks_of(settings) > 1)
        bytes->by[TESS_MEM_HOST] += tess_block_granted(sizes.scores);
    const size_t moments = lay_out_device(plan, NULL, NULL) * sizeof(double);
    if (moments)
        bytes->by[TESS_MEM_WORKSPACE] += device->memory->granted(device, moments);
    return TESS_OK;
}

static tess_status allocate(tess_statistics *s, const tess_pixel_stage_settings *settings, tess_error *error)
{
    tess_device *device = settings->device;
    const size_t host = lay_out(s->plan, ranks_of(settings), NULL, &s->at) * sizeof(double);
    const size_t moments = lay_out_device(s->plan, NULL, NULL) * sizeof(double);
    TESS_TRY(tess_block_alloc(settings->memory, &s->host, TESS_MEM_HOST, host, error));
    lay_out(s->plan, ranks_of(settings), s->host.data, &s->at);
    if (moments)
        TESS_TRY(device->memory->alloc(device, &s->device, TESS_MEM_WORKSPACE, moments, error));
    lay_out_device(s->plan, s->device.data, s);
    if (!s->dist)
        return TESS_OK;
    if (s->dist->rank == 0)
        TESS_TRY(
            tess_block_alloc(settings->memory, &s->received, TESS_MEM_HOST, s->stage.sizes.scores, error));
    return tess_dist_exchange_create(s->dist, 1, &s->exchange, error);
}

tess_status tess_statistics_create(const tess_pixel_stage_settings *settings, const tess_pixel_set *set,
                                   tess_spectral_state *state, tess_statistics **out, tess_error *error)
{
    *out = NULL;
    tess_statistics *s = tess_small_alloc(1, sizeof *s);
    if (!s)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the statistics");
    s->state = state;
    s->plan = state->plan;
    s->dist = ranks_of(settings) > 1 ? settings->dist : NULL;
    tess_status status = tess_pixel_stage_create(settings, state->plan, set, &s->stage, error);
    if (status == TESS_OK)
        status = allocate(s, settings, error);
    if (status == TESS_OK)
        *out = s;
    else
        tess_statistics_destroy(s);
    return status;
}

void tess_statistics_destroy(tess_statistics *s)
{
    if (!s)
        return;
    tess_device *device = s->stage.settings.device;
    if (s->device.data)
        device->memory->free(device, &s->device);
    tess_dist_exchange_destroy(s->exchange);
    tess_block_free(&s->received);
    tess_block_free(&s->host);
    tess_pixel_stage_destroy(&s->stage);
    tess_small_free(s);
}

void tess_statistics_renew(tess_statistics *s)
{
    s->factor_known = false;
}

int tess_statistics_score_readings(const tess_spectral_plan *plan)
{
    return 1 + tess_spectral_readings_at(plan, tess_pipeline_score(&plan->pipeline));
}

int tess_statistics_fit_readings(const tess_spectral_plan *plan)
{
    int sum = 0;
    for (int pass = 1; pass <= plan->passes; pass++) {
        int spectra = 0, scores = 0, before = 0;
        for (int t = 0; t < plan->taps; t++) {
            const tess_tap *tap = &plan->tap[t];
            if (tap->scope != TESS_SCOPE_SET || pass < tap->first || pass > tap->last)
                continue;
            const int readings = tess_spectral_readings_at(plan, tap->at);
            if (tess_tap_of_scores(tap)) {
                scores = 1 + readings;
            } else {
                spectra = 1;
                before = readings > before ? readings : before;
            }
        }
        sum += spectra + before + scores;
    }
    return sum;
}

tess_statistics_report tess_statistics_facts(tess_statistics *s)
{
    tess_pixel_stage *stage = &s->stage;
    return (tess_statistics_report){.bytes_read = stage->bytes_read,
                                    .pixels = s->pixels,
                                    .rank = s->rank,
                                    .read_seconds = tess_pixel_blocks_seconds(&stage->blocks),
                                    .path_seconds = stage->path_seconds,
                                    .path_values = stage->path_values,
                                    .solve_seconds = s->solve_seconds,
                                    .solves = s->solves};
}
