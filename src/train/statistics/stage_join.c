/* stage_join.c: images of a set in place that follow one another in memory, of one width, are taken together where only sums
 * over their pixels are wanted. On a card an op of a batch of small cubes is mostly starts and ends of kernels. */
#include "base/checked.h"
#include "train/statistics/stage_impl.h"

/* Values that a host takes at a time: its stop is looked at between blocks. */
enum { MOST_ON_HOST = 32 << 20 };

static int64_t pixels_of(const tess_pixel_set *set, int64_t image)
{
    return set->image[image].height * set->image[image].width;
}

/* True if an image lies right behind the one before, and is as wide. */
static bool follows(const tess_pixel_set *set, int64_t image)
{
    const float *before = set->at(set->user, image - 1, 0), *at = set->at(set->user, image, 0);
    return set->image[image].width == set->image[image - 1].width &&
           before + pixels_of(set, image - 1) * set->bands == at;
}

static bool is_whole(const tess_pixel_set *set, const tess_pixel_block *block)
{
    return block->read.rows == set->image[block->image].height;
}

static bool has_room(const tess_pixel_stage *stage)
{
    const int64_t values = stage->loaded_rows * stage->width * stage->set->bands;
    return (!stage->walk.alike || stage->block.joined + 1 < TESS_PIXEL_ALIKE) &&
           (!stage->settings.device->host_memory || values < MOST_ON_HOST);
}

void tess_pixel_stage_join(tess_pixel_stage *stage)
{
    const tess_pixel_set *set = stage->set;
    tess_pixel_block *block = &stage->block, next;
    tess_pixel_place after = stage->place;
    while (is_whole(set, block) && has_room(stage) && tess_pixel_walk_next(&stage->walk, &after, &next) &&
           next.image == block->image + block->joined + 1 && is_whole(set, &next) &&
           (!stage->walk.alike || next.read.rows == block->read.rows) && follows(set, next.image)) {
        stage->loaded_rows += next.read.rows;
        stage->place = after;
        block->joined++;
    }
}

static tess_status ask(const tess_pixel_stage_settings *settings, const tess_op *op, size_t *workspace,
                       tess_error *error)
{
    tess_op_needs needs;
    TESS_TRY(settings->device->ops->query(settings->device, op, &needs, error));
    *workspace = needs.workspace > *workspace ? needs.workspace : *workspace;
    return TESS_OK;
}

/* Images that are condensed have moments each. */
static tess_status ask_alike(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                             const tess_pixel_set *set, size_t *workspace, tess_error *error)
{
    const int channels = tess_spectral_gives(plan, tess_spectral_network_at(plan));
    int64_t run = 0;
    for (int64_t i = 0; i < set->images; i++) {
        const bool alike = i > 0 && set->image[i].height == set->image[i - 1].height && follows(set, i);
        run = alike ? tess_min_i64(run + 1, TESS_PIXEL_ALIKE) : 1;
        const tess_op op = tess_pixel_moments_each_op(run, pixels_of(set, i), channels);
        if (i + 1 == set->images || set->image[i + 1].height != set->image[i].height || !follows(set, i + 1))
            TESS_TRY(ask(settings, &op, workspace, error));
    }
    return TESS_OK;
}

tess_status tess_pixel_ask_joined(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                                  const tess_pixel_set *set, size_t *workspace, tess_error *error)
{
    int64_t run = 0, most = 0;
    for (int64_t i = 0; i < set->images; i++) {
        run = (i > 0 && follows(set, i) ? run : 0) + pixels_of(set, i);
        most = tess_max_i64(most, run);
    }
    for (int t = 0; t < plan->taps; t++) {
        const tess_tap *tap = &plan->tap[t];
        if (tap->needs & (TESS_NEED_SCORES | TESS_NEED_SCORE_ORDER))
            continue;
        const tess_op op = tess_pixel_moments_op(most, tess_spectral_gives(plan, tap->at),
                                                 tap->needs & TESS_NEED_COVARIANCE, false);
        TESS_TRY(ask(settings, &op, workspace, error));
    }
    return tess_spectral_by_network(plan) ? ask_alike(settings, plan, set, workspace, error) : TESS_OK;
}
