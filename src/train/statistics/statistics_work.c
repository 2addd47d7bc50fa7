/* statistics_work.c: what phase 1 and scoring will do, without doing it: the ops, bytes and host's work of the loops of
 * statistics_fit.c and statistics_score.c, in their order. */
#include "base/checked.h"
#include "train/statistics/stage_impl.h"
#include "train/statistics/statistics_impl.h"

typedef struct listing {
    const tess_pixel_stage_settings *settings;
    const tess_spectral_plan *plan;
    const tess_pixel_set *set;
    tess_statistics_work *work;
} listing;

/* An image by its blocks. */
typedef struct blocks {
    const tess_pixel_image *image;
    int64_t pixels; /* of a block */
    double count;   /* of blocks */
} blocks;

static blocks blocks_of(const listing *l, int64_t index, int64_t halo)
{
    const tess_pixel_image *image = &l->set->image[index];
    const int64_t rows = tess_pixel_block_rows(l->settings, l->plan, image),
                  read = tess_min_i64(rows + 2 * halo, image->height);
    return (blocks){image, read * image->width, (double)image->height / (double)rows};
}

static void add_op(const listing *l, const tess_op *op, double runs)
{
    l->work->op(l->work->user, op, runs);
}

static void add_load(const listing *l, const blocks *b)
{
    const tess_op op = tess_pixel_import_op(b->image->dtype, b->pixels, l->plan->bands);
    if (b->image->dtype != TESS_F32) /* which needs none */
        add_op(l, &op, b->count);
    l->work->blocks += b->count;
    const double bytes =
        b->count * (double)b->pixels * l->plan->bands * (double)tess_dtype_size(b->image->dtype);
    l->work->bytes_read += bytes;
    l->work->bytes_up += bytes;
}

/* The pixels at a place of the pipeline: behind a path the host computes them, and sends them. */
static void add_path(const listing *l, const blocks *b, int at)
{
    if (at == TESS_NODE_DATA)
        return;
    const double pixels = b->count * (double)b->pixels;
    const int out = tess_spectral_gives(l->plan, at);
    l->work->path_values += pixels * (l->plan->bands + out);
    l->work->bytes_up += pixels * out * (double)sizeof(float);
}

/* One reading of an image for the taps of a pass. */
static void add_gather(const listing *l, int64_t image, tess_node_scope scope, int number)
{
    const blocks b = blocks_of(l, image, 0);
    const unsigned by_moments = TESS_NEED_MEAN | TESS_NEED_COVARIANCE | TESS_NEED_RANGE;
    bool loads = false;
    for (int t = 0; t < l->plan->taps; t++) {
        const tess_tap *tap = &l->plan->tap[t];
        if (tap->scope != scope || number < tap->first || number > tap->last || tess_tap_of_scores(tap))
            continue;
        if (!loads)
            add_load(l, &b);
        loads = true;
        add_path(l, &b, tap->at);
        const tess_op op =
            tess_pixel_moments_op(b.pixels, tess_spectral_gives(l->plan, tap->at),
                                  tap->needs & TESS_NEED_COVARIANCE, tess_pixel_has_gaps(b.image));
        if (number == tap->first && (tap->needs & by_moments))
            add_op(l, &op, b.count);
    }
}

static void add_fit_image(const listing *l, int64_t image, int node)
{
    const int readings = tess_spectral_readings_at(l->plan, node);
    for (int r = 1; r <= readings; r++)
        add_gather(l, image, TESS_SCOPE_IMAGE, r);
    l->work->solves += readings;
}

static void add_score(const listing *l, int64_t image)
{
    const int score = tess_pipeline_score(&l->plan->pipeline), at = tess_spectral_score_at(l->plan),
              channels = tess_spectral_gives(l->plan, at);
    const tess_node *node = &l->plan->pipeline.nodes[score];
    const tess_node_scope scope = tess_node_scope_of(node);
    const bool local = scope == TESS_SCOPE_LOCAL, stream = scope == TESS_SCOPE_STREAM;
    const blocks b = blocks_of(l, image, local ? (int64_t)node->values[TESS_RX_OUTER] / 2 : 0);
    tess_op op = local
                     ? tess_pixel_local_op(b.pixels / b.image->width, b.image->width, channels,
                                           (int)node->values[TESS_RX_INNER], (int)node->values[TESS_RX_OUTER],
                                           node->values[TESS_RX_EPS], tess_pixel_has_gaps(b.image))
                     : tess_pixel_score_op(b.pixels, channels, tess_spectral_reads(l->plan, score));
    add_fit_image(l, image, score);
    add_load(l, &b);
    add_path(l, &b, at);
    add_op(l, &op, b.count);
    if (stream) {
        op = tess_pixel_moments_op(b.pixels, channels, true, tess_pixel_has_gaps(b.image));
        add_op(l, &op, b.count);
    }
    const double pixels = (double)(b.image->height * b.image->width);
    l->work->solves += local ? 0 : stream ? b.count : tess_spectral_readings_at(l->plan, score) > 0;
    l->work->bytes_down += pixels * (double)sizeof(float);
    l->work->scored += pixels;
}

/* The factor of a set is made once; that of an image, or of a step of a stream, is counted there. */
static int set_factors(const tess_spectral_plan *plan)
{
    const int score = tess_pipeline_score(&plan->pipeline);
    const tess_node_scope scope = tess_node_scope_of(&plan->pipeline.nodes[score]);
    return scope != TESS_SCOPE_LOCAL && scope != TESS_SCOPE_STREAM &&
           tess_spectral_readings_at(plan, score) == 0;
}

/* The place of a pass that needs the most readings of an image, and whether it reads spectra and scores. */
static int deepest(const tess_spectral_plan *plan, int number, bool *spectra, bool *scores)
{
    int node = TESS_NODE_DATA;
    *spectra = *scores = false;
    for (int t = 0; t < plan->taps; t++) {
        const tess_tap *tap = &plan->tap[t];
        if (tap->scope != TESS_SCOPE_SET || number < tap->first || number > tap->last)
            continue;
        *scores |= tess_tap_of_scores(tap);
        *spectra |= !tess_tap_of_scores(tap);
        if (!tess_tap_of_scores(tap) &&
            tess_spectral_readings_at(plan, tap->at) > tess_spectral_readings_at(plan, node))
            node = tap->at;
    }
    return node;
}

void tess_statistics_list(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                          const tess_pixel_set *set, bool fit, tess_statistics_work *work)
{
    const listing l = {settings, plan, set, work};
    for (int64_t image = 0; image < set->images && !fit; image++)
        add_score(&l, image);
    work->solves += fit ? 0 : set_factors(plan);
    for (int number = 1; number <= plan->passes && fit; number++) {
        bool spectra, scores;
        const int node = deepest(plan, number, &spectra, &scores);
        for (int64_t image = 0; image < set->images; image++) {
            if (spectra) {
                add_fit_image(&l, image, node);
                add_gather(&l, image, TESS_SCOPE_SET, number);
            }
            if (scores)
                add_score(&l, image);
        }
        work->solves += 1 + (scores ? set_factors(plan) : 0);
    }
}
