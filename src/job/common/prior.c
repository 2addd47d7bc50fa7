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
    tess_device *device = p->engine->device;
    const tess_windows_settings settings = {.device = device,
                                            .keep = (int)tess_min_i64(tess_cut_shapes(&cut), MOST_SHAPES)};
    if (tess_prior_in_strips(p))
        TESS_TRY(tess_neighbours_open(&p->neighbours, p->engine->dist, 1, error));
    if (p->links) {
        TESS_TRY(device->streams->create(device, &p->stream, error));
        TESS_TRY(device->memory->alloc(device, &p->stage, TESS_MEM_IO, tess_prior_stage_bytes(p), error));
        TESS_TRY(tess_card_links_join(p->links, device, p->choice.exchange_bytes, &p->neighbours, error));
    }
    TESS_TRY(tess_windows_create(&settings, &p->windows, error));
    TESS_TRY(tess_windows_alloc(p->windows, p->choice.arena_bytes, p->choice.workspace_bytes, error));
    return tess_windows_prepare(p->windows, &net, &cut, error);
}

void tess_prior_close(tess_prior *p)
{
    tess_windows_destroy(p->windows);
    p->windows = NULL;
    tess_neighbours_close(&p->neighbours);
    if (p->stage.data)
        p->engine->device->memory->free(p->engine->device, &p->stage);
    if (p->stream)
        p->engine->device->streams->destroy(p->engine->device, p->stream);
    p->stream = NULL;
}

/* From and to the memory of the device. Queues the work. */
static tess_status run(tess_prior *p, const void *in, void *out, double sigma, tess_error *error)
{
    const tess_cut cut = tess_cut_of(&p->choice);
    const tess_window_net net = net_of(p);
    const tess_resident images = {.in = p->image,
                                  .out = p->image,
                                  .in_data = in,
                                  .out_data = out,
                                  .full_scale = 1,
                                  .level_channel = p->model->model.noise_map,
                                  .level = (float)sigma,
                                  .exchanger = tess_prior_in_strips(p) ? &tess_neighbours_exchanger : NULL,
                                  .exchange_user = &p->neighbours};
    return tess_windows_run_resident(p->windows, &net, &cut, &images, p->stream, error);
}

/* Uploads fail only when they are waited for, so that a card that is lost makes its exchanges all the same. */
static tess_status run_staged(tess_prior *p, const void *in, void *out, double sigma, tess_error *error)
{
    tess_device *device = p->engine->device;
    const tess_tensor *t = &p->image;
    const size_t bytes = (size_t)(t->d * t->h * t->w * t->c) * sizeof(float);
    char *from = p->stage.data,
         *to = tess_prior_in_strips(p) ? from : from + tess_align_size(bytes, TESS_STAGE_ALIGN);
    device->memory->copy(device, from, in, bytes, p->stream);
    const tess_status status = run(p, from, to, sigma, error);
    device->memory->copy(device, out, to, bytes, p->stream);
    return status;
}

tess_status tess_prior_denoise(void *user, const void *in, void *out, double sigma, tess_error *error)
{
    tess_prior *p = user;
    tess_device *device = p->engine->device;
    tess_error other;
    const tess_status ran = (p->links ? run_staged : run)(p, in, out, sigma, error),
                      done = device->streams->sync(device, p->stream, ran == TESS_OK ? error : &other);
    return tess_card_links_check(p->engine->dist, &p->neighbours, ran == TESS_OK ? done : ran, error);
}
