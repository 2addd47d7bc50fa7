#include "job/common/prior.h"

#include "base/checked.h"
#include "window/resident.h"

/* plans kept in the cache; shapes beyond that are planned again for every window */
enum { MOST_SHAPES = 256 };

static tess_window_net net_of(const tess_prior *p)
{
    return (tess_window_net){p->model->bound, p->model->weights.data, tess_prior_planes(p)};
}

tess_status tess_prior_open(tess_prior *p, tess_error *error)
{
    const tess_cut cut = tess_cut_of(&p->choice);
    const tess_window_net net = net_of(p);
    const tess_windows_settings settings = {.device = p->engine->device,
                                            .keep = (int)tess_min_i64(tess_cut_shapes(&cut), MOST_SHAPES)};
    tess_dist *dist = p->engine->dist;
    if (tess_prior_in_strips(p))
        TESS_TRY(tess_neighbours_open(&p->neighbours, dist, 1, error));
    TESS_TRY(tess_windows_create(&settings, &p->windows, error));
    TESS_TRY(tess_windows_alloc(p->windows, p->choice.arena_bytes, p->choice.workspace_bytes, error));
    return tess_windows_prepare(p->windows, &net, &cut, error);
}

void tess_prior_close(tess_prior *p)
{
    tess_windows_destroy(p->windows);
    p->windows = NULL;
    tess_neighbours_close(&p->neighbours);
}

tess_status tess_prior_denoise(void *user, const void *in, void *out, double sigma, tess_error *error)
{
    tess_prior *p = user;
    const bool strips = tess_prior_in_strips(p);
    const tess_cut cut = tess_cut_of(&p->choice);
    const tess_window_net net = net_of(p);
    const tess_resident images = {.in = p->image,
                                  .out = p->image,
                                  .in_data = in,
                                  .out_data = out,
                                  .full_scale = 1,
                                  .level_channel = p->model->model.noise_map,
                                  .level = (float)sigma,
                                  .exchanger = strips ? &tess_neighbours_exchanger : NULL,
                                  .exchange_user = &p->neighbours};
    TESS_TRY(tess_windows_run_resident(p->windows, &net, &cut, &images, NULL, error));
    if (strips && p->neighbours.status != TESS_OK)
        return tess_fail(error, p->neighbours.status, "%s", p->neighbours.error.text);
    return p->engine->device->streams->sync(p->engine->device, NULL, error);
}
