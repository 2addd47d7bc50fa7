/* statistics_score.c: the scores of images, block by block. */
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

static tess_status load_parameters(tess_statistics *s, tess_error *error)
{
    if (s->factor_known)
        return TESS_OK;
    TESS_TRY(s->stage.network.net ? tess_pixel_network_load(&s->stage.network, s->state, s->at.work, error)
                                  : tess_statistics_make_factor(s, error));
    s->factor_known = true;
    return TESS_OK;
}

/* Scores of `rows` rows of the loaded block, in their final form. */
static void finish_scores(const tess_statistics *s, const tess_score_task *task, int64_t rows, float *scores)
{
    for (int64_t p = 0; p < rows * s->stage.width && task->logits; p++)
        scores[p] = (float)(task->scale * ((double)scores[p] - task->bias));
}

/* The next block of the walk. *out is NULL behind the last one. */
static tess_status score_block(tess_statistics *s, const tess_score_task *task,
                               const tess_pixel_block **block, const float **out, tess_error *error)
{
    const tess_node *node = &s->plan->pipeline.nodes[tess_pipeline_score(&s->plan->pipeline)];
    const int channels = tess_spectral_gives(s->plan, tess_spectral_score_at(s->plan));
    float *scores = s->stage.scores.data;
    *out = NULL;
    TESS_TRY(tess_pixel_stage_next(&s->stage, block, error));
    if (!*block)
        return TESS_OK;
    const float *there = tess_pixel_stage_behind(&s->stage, &s->score_path);
    if (tess_node_scope_of(node) ==
        TESS_SCOPE_LOCAL) { /* the scores of the rows around the block are not used */
        TESS_TRY(tess_pixel_stage_local(&s->stage, there, channels, (int)node->values[TESS_RX_INNER],
                                        (int)node->values[TESS_RX_OUTER], node->values[TESS_RX_EPS], scores,
                                        error));
        scores += ((*block)->rows.first - (*block)->read.first) * s->stage.width;
    } else {
        TESS_TRY(tess_pixel_stage_score(&s->stage, there, 0, s->stage.pixels, channels,
                                        tess_statistics_factor_rows(s), scores, error));
    }
    finish_scores(s, task, (*block)->rows.rows, scores);
    tess_stop_add(s->stage.settings.stop, (*block)->rows.rows * s->stage.width);
    *out = scores;
    return TESS_OK;
}

static tess_status compute_block(tess_statistics *s, const tess_score_task *task, const float **out,
                                 tess_error *error)
{
    const tess_pixel_block *block;
    TESS_TRY(score_block(s, task, &block, out, error));
    return tess_stop_check(s->stage.settings.stop, error); /* another rank keeps the scores */
}

/* Parameters for the scores of this image, if it is not -1, and the walk over the blocks of the task. */
static tess_status begin_blocks(tess_statistics *s, const tess_score_task *task, int64_t image,
                                tess_error *error)
{
    const tess_node *node = &s->plan->pipeline.nodes[tess_pipeline_score(&s->plan->pipeline)];
    tess_pixel_walk blocks = tess_statistics_walk(s, task->set, task->image, task->end);
    if (tess_node_scope_of(node) == TESS_SCOPE_LOCAL)
        blocks.halo = s->stage.sizes.halo;
    else if (image >= 0)
        TESS_TRY(load_parameters(s, error));
    return tess_pixel_stage_begin(&s->stage, &blocks, error);
}

static tess_status score_blocks(tess_statistics *s, const tess_score_task *task, tess_error *error)
{
    const int64_t own = tess_statistics_together(s, task->set, task->image, task->end) > 1
                            ? tess_statistics_own_image(s, task->image, task->end)
                            : task->image;
    const tess_status begun = begin_blocks(s, task, own, error);
    if (tess_statistics_ranks(s) > 1)
        return tess_statistics_score_shared(s, task, compute_block, begun, error);
    TESS_TRY(begun);
    for (;;) {
        const tess_pixel_block *block;
        const float *scores;
        TESS_TRY(score_block(s, task, &block, &scores, error));
        if (!block)
            return TESS_OK;
        TESS_TRY(task->sink(task->user, block->image, block->rows.first, block->rows.rows, scores, error));
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

/* Each step needs the one before it: where ranks share the work, rank 0 has it all. */
static tess_status score_stream(tess_statistics *s, const tess_score_task *task, const tess_node *node,
                                tess_error *error)
{
    const tess_pixel_walk blocks = {
        .set = task->set, .image = task->image, .end = task->end, .rows = stream_rows, .user = node};
    const tess_pixel_block *block;
    const int channels = tess_spectral_gives(s->plan, tess_spectral_score_at(s->plan));
    float *scores = s->stage.scores.data;
    tess_moments_clear(s->at.block, channels, true);
    TESS_TRY(tess_pixel_stage_begin(&s->stage, &blocks, error));
    for (;;) {
        TESS_TRY(tess_pixel_stage_next(&s->stage, &block, error));
        if (!block)
            return TESS_OK;
        const float *there = tess_pixel_stage_behind(&s->stage, &s->score_path);
        TESS_TRY(stream_step(s, node, block->rows.rows, there, error));
        TESS_TRY(tess_pixel_stage_score(&s->stage, there, 0, s->stage.pixels, channels,
                                        tess_statistics_factor_rows(s), scores, error));
        finish_scores(s, task, block->rows.rows, scores);
        TESS_TRY(task->sink(task->user, block->image, block->rows.first, block->rows.rows, scores, error));
        tess_stop_add(s->stage.settings.stop, s->stage.pixels);
    }
}

/* One image, or several of one block each that ranks score at the same time. */
static tess_status score_some(tess_statistics *s, const tess_score_task *task, tess_error *error)
{
    const int score = tess_pipeline_score(&s->plan->pipeline);
    const tess_node *node = &s->plan->pipeline.nodes[score];
    TESS_TRY(tess_statistics_fit_images(s, task->set, task->image, task->end, score, error));
    tess_path_make(s->state, tess_spectral_score_at(s->plan), s->at.score_path, s->at.work, &s->score_path);
    if (tess_node_scope_of(node) != TESS_SCOPE_STREAM)
        return score_blocks(s, task, error);
    const bool here = tess_statistics_ranks(s) == 1 || s->dist->rank == 0;
    return tess_statistics_agree(s, here ? score_stream(s, task, node, error) : TESS_OK, error);
}

tess_status tess_statistics_run_scores(tess_statistics *s, const tess_score_task *task, tess_error *error)
{
    const int64_t step = tess_statistics_together(s, task->set, task->image, task->end);
    tess_score_task some = *task;
    for (int64_t image = task->image; image < task->end; image += step) {
        some.image = image;
        some.end = tess_min_i64(image + step, task->end);
        TESS_TRY(score_some(s, &some, error));
    }
    return TESS_OK;
}

tess_status tess_statistics_score(tess_statistics *s, const tess_pixel_set *set, int64_t image, int64_t end,
                                  tess_score_sink sink, void *user, tess_error *error)
{
    const int node = tess_pipeline_kind(&s->plan->pipeline, TESS_NODE_SCORE_TO_LOGIT);
    tess_score_task task = {
        .set = set, .image = image, .end = end, .logits = node >= 0, .sink = sink, .user = user};
    if (node >= 0)
        task.scale = s->state->of[node][0], task.bias = s->state->of[node][1];
    return tess_statistics_run_scores(s, &task, error);
}
