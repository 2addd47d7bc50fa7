/* How the prior cuts what it is given: by the plan for images, every slice alike, or by that for volumes. */
#include "job/common/prior.h"
#include "plan/volume.h"

int64_t tess_prior_planes(const tess_prior *p)
{
    return p->model->model.channels == 1 ? p->image.c : 1;
}

static tess_status choose_windows(tess_prior *p, const tess_prior_wish *wish, tess_error *error)
{
    const bool whole = wish->tile_height == TESS_TILE_WHOLE;
    const int64_t depth = wish->tile_depth == TESS_TILE_CUBE ? wish->tile_height
                          : wish->tile_depth > 0             ? wish->tile_depth
                                                             : 0;
    const tess_volume_wish volume = {
        .size = {p->image.d, p->image.h, p->image.w},
        .tile = {depth, wish->tile_height, wish->tile_width},
        .halo = wish->halo,
        .limit = wish->limit,
        .others = wish->others,
        .asked_limit = wish->asked_limit,
        .job_needs = wish->job_needs,
        .apart = p->engine->apart,
    };
    if (wish->batch > 1)
        return tess_fail(error, TESS_BAD_OPTION, "--batch %lld: a volume goes window by window; leave it out",
                         (long long)wish->batch);
    if (whole && depth)
        return tess_fail(error, TESS_BAD_OPTION, "--tile: whole has no depth");
    return tess_volume_choose(p->model->bound, &p->model->model, p->engine->rates, &volume, &p->choice,
                              error);
}

static tess_status choose_slices(tess_prior *p, const tess_prior_wish *wish, tess_error *error)
{
    const tess_denoise_wish slice = {
        .height = p->image.h,
        .width = p->image.w,
        .planes = tess_prior_planes(p),
        .others = wish->others,
        .apart = p->engine->apart,
        .host_limit = UINT64_MAX,
        .tile_height = wish->tile_height,
        .tile_width = wish->tile_width,
        .halo = wish->halo,
        .halo_times = 2, /* what a seam changes goes round the loop and is changed again */
        .batch = wish->batch,
        .limit = wish->limit,
        .asked_limit = wish->asked_limit,
        .job_needs = wish->job_needs,
    };
    if (wish->tile_depth > 0)
        return tess_fail(error, TESS_BAD_OPTION, "--tile %lldx%lldx%lld: %s", (long long)wish->tile_depth,
                         (long long)wish->tile_height, (long long)wish->tile_width,
                         p->image.d == 1 ? "this is an image; use N or HxW"
                                         : "slices are denoised one by one; use HxW, or --prior volume");
    TESS_TRY(
        tess_denoise_choose(p->model->bound, &p->model->model, p->engine->rates, &slice, &p->choice, error));
    p->choice.depth = tess_axis_cut(p->image.d, 1, 0, 1);
    p->choice.seconds *= (double)p->image.d;
    return TESS_OK;
}

tess_status tess_prior_choose(tess_prior *p, const tess_prior_wish *wish, tess_error *error)
{
    return p->model->model.volume ? choose_windows(p, wish, error) : choose_slices(p, wish, error);
}
