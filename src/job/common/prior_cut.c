/* How the prior is cut: into windows for a 3-D network, into slices for a 2-D one. */
#include "base/checked.h"
#include "job/common/prior.h"

int64_t tess_prior_planes(const tess_prior *p)
{
    return p->model->model.channels == 1 ? p->image.c : 1;
}

bool tess_prior_in_strips(const tess_prior *p)
{
    return tess_share_many(p->share) && (!p->slices || p->model->model.volume);
}

size_t tess_prior_stage_bytes(const tess_prior *p)
{
    const tess_tensor *t = &p->image;
    if (!p->links)
        return 0;
    const size_t image = (size_t)(t->d * t->h * t->w * t->c) * sizeof(float);
    return tess_prior_in_strips(p) ? image : 2 * tess_align_size(image, TESS_STAGE_ALIGN);
}

/* What the prior needs besides the cut: the stage, and pinned memory for the exchanges of a part. */
static void add_stage(tess_prior *p, size_t stage)
{
    p->choice.bytes.by[TESS_MEM_IO] += stage;
    if (p->links)
        p->choice.bytes.by[TESS_MEM_HOST] += tess_card_links_pinned(p->links, p->choice.exchange_bytes);
}

static tess_status check(const tess_prior *p, const tess_prior_request *r, tess_error *error)
{
    const bool volume = p->model->model.volume;
    if (volume && tess_prior_in_strips(p) && r->tile_height != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`tile`: each rank has a slab of the volume; leave it out");
    if (volume && r->batch > 1)
        return tess_fail(error, TESS_BAD_OPTION, "`batch` %lld: a volume goes window by window; leave it out",
                         (long long)r->batch);
    if (volume && r->tile_height == TESS_TILE_WHOLE && (r->tile_depth > 0 || r->tile_depth == TESS_TILE_CUBE))
        return tess_fail(error, TESS_BAD_OPTION, "`tile`: whole has no depth");
    if (!volume && r->tile_depth > 0)
        return tess_fail(error, TESS_BAD_OPTION, "`tile` %lldx%lldx%lld: %s", (long long)r->tile_depth,
                         (long long)r->tile_height, (long long)r->tile_width,
                         p->image.d == 1 ? "this is an image; use N or HxW"
                                         : "slices are denoised one by one; use HxW, or `prior` volume");
    return TESS_OK;
}

tess_status tess_prior_choose(tess_prior *p, const tess_prior_request *r, tess_error *error)
{
    const bool volume = p->model->model.volume;
    tess_device *device = p->engine->device;
    const size_t stage = device->memory->granted(device, tess_prior_stage_bytes(p));
    const int64_t depth = r->tile_depth == TESS_TILE_CUBE ? r->tile_height : tess_max_i64(r->tile_depth, 0);
    tess_cut_request request = {
        .size = {p->image.d, p->image.h, p->image.w},
        .tile = {depth, r->tile_height, r->tile_width},
        .halo = {r->halo, r->halo, r->halo},
        /* The error of a seam accumulates over iterations; volumes have a separate halo table. */
        .halo_times = volume ? 1 : 2,
        .batch = volume ? 1 : r->batch,
        .planes = tess_prior_planes(p),
        .others = r->others + stage,
        .separate_memory = p->engine->separate_memory,
        .host_limit = UINT64_MAX,
        .limit = r->limit,
        .asked_limit = r->asked_limit,
        .job_needs = r->job_needs,
    };
    TESS_TRY(check(p, r, error));
    if (tess_prior_in_strips(p)) {
        request.above = p->share->dist->rank > 0;
        request.below = p->share->dist->rank + 1 < p->share->dist->size;
        request.slices = p->slices;
        request.tile[TESS_HEIGHT] = request.tile[TESS_WIDTH] = TESS_TILE_WHOLE;
        request.batch = 1;
    }
    const tess_status status =
        tess_cut_choose(p->model->bound, &p->model->model, p->engine->rates, &request, &p->choice, error);
    add_stage(p, stage);
    return status;
}
