/* statistics_score.c: the scores of one image, block by block. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "tensor/moments.h"
#include "train/statistics/statistics_impl.h"

int tess_statistics_factor_rows(const tess_statistics *s)
{
    return s->rank > 0 ? s->rank : 1;
}

tess_status tess_statistics_make_factor(tess_statistics *s, tess_error *error)
{
    const int channels = tess_spectral_gives(s->plan, tess_spectral_score_at(s->plan));
    const double start = tess_clock();
    TESS_TRY(tess_spectral_quadratic(s->state, s->at.centre, s->at.factor, &s->rank, s->at.work, error));
    s->solve_seconds += tess_clock() - start;
    s->solves++;
    if (s->rank == 0) /* all pixels are equal: a row of zeros gives them the score 0 */
        memset(s->at.factor, 0, (size_t)channels * sizeof(float));
    tess_pixel_stage_factor(&s->stage, s->at.centre, s->at.factor, channels, tess_statistics_factor_rows(s));
    return TESS_OK;
}

typedef struct walk {
    tess_statistics *s;
    const tess_pixel_set *set;
    int64_t image;
    tess_score_sink sink;
    void *user;
} walk;

static tess_status load_parameters(tess_statistics *s, tess_error *error)
{
    if (s->factor_known)
        return TESS_OK;
    TESS_TRY(s->stage.network.net ? tess_pixel_network_load(&s->stage.network, s->state, s->at.work, error)
                                  : tess_statistics_make_factor(s, error));
    s->factor_known = true;
    return TESS_OK;
}

static tess_pixel_walk walk_of(const walk *w)
{
    return (tess_pixel_walk){.set = w->set, .image = w->image, .end = w->image + 1};
}

static tess_status score_blocks(const walk *w, tess_error *error)
{
    tess_statistics *s = w->s;
    const tess_pixel_walk blocks = walk_of(w);
    const tess_pixel_block *block;
    const int channels = tess_spectral_gives(s->plan, tess_spectral_score_at(s->plan));
    float *scores = s->stage.scores.data;
    TESS_TRY(load_parameters(s, error));
    TESS_TRY(tess_pixel_stage_begin(&s->stage, &blocks, error));
    for (;;) {
        TESS_TRY(tess_pixel_stage_next(&s->stage, &block, error));
        if (!block)
            return TESS_OK;
        const float *there = tess_pixel_stage_behind(&s->stage, &s->score_path);
        TESS_TRY(tess_pixel_stage_score(&s->stage, there, 0, s->stage.pixels, channels,
                                        tess_statistics_factor_rows(s), scores, error));
        TESS_TRY(w->sink(w->user, w->image, block->rows.first, block->rows.rows, scores, error));
        tess_stop_add(s->stage.settings.stop, s->stage.pixels);
    }
}

/* Rows around a block are read with it; their scores are not used. */
static tess_status score_windows(const walk *w, const tess_node *node, tess_error *error)
{
    tess_statistics *s = w->s;
    tess_pixel_walk blocks = walk_of(w);
    const tess_pixel_block *block;
    const int channels = tess_spectral_gives(s->plan, tess_spectral_score_at(s->plan));
    float *scores = s->stage.scores.data;
    blocks.halo = s->stage.sizes.halo;
    TESS_TRY(tess_pixel_stage_begin(&s->stage, &blocks, error));
    for (;;) {
        TESS_TRY(tess_pixel_stage_next(&s->stage, &block, error));
        if (!block)
            return TESS_OK;
        const float *there = tess_pixel_stage_behind(&s->stage, &s->score_path);
        TESS_TRY(tess_pixel_stage_local(&s->stage, there, channels, (int)node->values[TESS_RX_INNER],
                                        (int)node->values[TESS_RX_OUTER], node->values[TESS_RX_EPS], scores,
                                        error));
        TESS_TRY(w->sink(w->user, w->image, block->rows.first, block->rows.rows,
                         scores + (block->rows.first - block->read.first) * s->stage.width, error));
        tess_stop_add(s->stage.settings.stop, block->rows.rows * s->stage.width);
    }
}

/* The statistics so far, each row's weight falling by `forgetting` with every row that follows. Rows are scored when their
 * step has been added: the first `warmup` rows together, then `every` rows at a time. */
static tess_status stream_step(tess_statistics *s, const tess_node *node, int64_t rows, const float *there,
                               tess_error *error)
{
    tess_device *device = s->stage.settings.device;
    const int score = tess_pipeline_score(&s->plan->pipeline), at = tess_spectral_score_at(s->plan);
    const int in = tess_spectral_gives(s->plan, at), channels = tess_spectral_reads(s->plan, score);
    const size_t bytes = tess_moments_values(in, true) * sizeof(double), c = (size_t)channels;
    double *sums = s->at.block; /* on the host: weighted */
    const double fade = pow(node->values[TESS_RX_FORGETTING], (double)rows);
    sums[TESS_MOMENTS_COUNT] *= fade;
    for (size_t i = tess_moments_second(in); i < tess_moments_values(in, true); i++)
        sums[i] *= fade;
    tess_moments_clear(s->at.mapped, in, true);
    device->memory->copy(device, s->streamed, s->at.mapped, bytes, NULL);
    TESS_TRY(tess_pixel_stage_moments(&s->stage, there, 0, s->stage.pixels, in, true, s->streamed, error));
    device->memory->copy(device, s->at.mapped, s->streamed, bytes, NULL);
    TESS_TRY(device->streams->sync(device, NULL, error));
    tess_moments_merge(sums, s->at.mapped, in, true);
    tess_spectral_fold(s->state, at, node->from, s->at.a, s->at.b, s->at.work);
    tess_moments_affine(sums, in, s->at.a, s->at.b, channels, s->at.mapped);
    const double count = sums[TESS_MOMENTS_COUNT], *second = s->at.mapped + tess_moments_second(channels);
    memcpy(tess_spectral_part(s->state, score, "mean"), s->at.mapped + TESS_MOMENTS_MEAN, c * sizeof(double));
    memcpy(tess_spectral_part(s->state, score, "centre"), sums + TESS_MOMENTS_MEAN,
           (size_t)in * sizeof(double));
    double *covariance = tess_spectral_part(s->state, score, "covariance");
    for (size_t i = 0; i < c * c; i++)
        covariance[i] = count > 1 ? second[i] / (count - 1) : 0;
    return tess_statistics_make_factor(s, error);
}

static int64_t stream_rows(const void *user, const tess_pixel_image *image, int64_t row)
{
    const tess_node *node = user;
    (void)image;
    return (int64_t)node->values[row ? TESS_RX_EVERY : TESS_RX_WARMUP];
}

static tess_status score_stream(const walk *w, const tess_node *node, tess_error *error)
{
    tess_statistics *s = w->s;
    tess_pixel_walk blocks = walk_of(w);
    const tess_pixel_block *block;
    const int channels = tess_spectral_gives(s->plan, tess_spectral_score_at(s->plan));
    float *scores = s->stage.scores.data;
    tess_moments_clear(s->at.block, channels, true);
    blocks.rows = stream_rows;
    blocks.user = node;
    TESS_TRY(tess_pixel_stage_begin(&s->stage, &blocks, error));
    for (;;) {
        TESS_TRY(tess_pixel_stage_next(&s->stage, &block, error));
        if (!block)
            return TESS_OK;
        const float *there = tess_pixel_stage_behind(&s->stage, &s->score_path);
        TESS_TRY(stream_step(s, node, block->rows.rows, there, error));
        TESS_TRY(tess_pixel_stage_score(&s->stage, there, 0, s->stage.pixels, channels,
                                        tess_statistics_factor_rows(s), scores, error));
        TESS_TRY(w->sink(w->user, w->image, block->rows.first, block->rows.rows, scores, error));
        tess_stop_add(s->stage.settings.stop, s->stage.pixels);
    }
}

tess_status tess_statistics_raw_scores(tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                       tess_score_sink sink, void *user, tess_error *error)
{
    const int score = tess_pipeline_score(&s->plan->pipeline);
    const tess_node *node = &s->plan->pipeline.nodes[score];
    const walk w = {s, set, image, sink, user};
    TESS_TRY(tess_statistics_fit_image(s, set, image, score, error));
    tess_path_make(s->state, tess_spectral_score_at(s->plan), s->at.score_path, s->at.work, &s->score_path);
    switch (tess_node_scope_of(node)) {
    case TESS_SCOPE_LOCAL:
        return score_windows(&w, node, error);
    case TESS_SCOPE_STREAM:
        return score_stream(&w, node, error);
    case TESS_SCOPE_NONE:
    case TESS_SCOPE_SET:
    case TESS_SCOPE_IMAGE:
        break;
    }
    return score_blocks(&w, error);
}

typedef struct logit {
    tess_statistics *s;
    double scale, bias;
    tess_score_sink sink;
    void *user;
} logit;

static tess_status to_logits(void *user, int64_t image, int64_t first_row, int64_t rows, const float *scores,
                             tess_error *error)
{
    const logit *l = user;
    float *own = l->s->stage.scores.data; /* `scores` lie in it */
    const int64_t offset = scores - own, pixels = rows * l->s->stage.width;
    for (int64_t p = offset; p < offset + pixels; p++)
        own[p] = (float)(l->scale * ((double)own[p] - l->bias));
    return l->sink(l->user, image, first_row, rows, scores, error);
}

tess_status tess_statistics_score(tess_statistics *s, const tess_pixel_set *set, int64_t image,
                                  tess_score_sink sink, void *user, tess_error *error)
{
    const int node = tess_pipeline_kind(&s->plan->pipeline, TESS_NODE_SCORE_TO_LOGIT);
    if (node < 0)
        return tess_statistics_raw_scores(s, set, image, sink, user, error);
    logit l = {s, s->state->of[node][0], s->state->of[node][1], sink, user};
    return tess_statistics_raw_scores(s, set, image, to_logits, &l, error);
}
