#include "train/statistics/stage_network.h"

#include "base/checked.h"

/* Lines are what threads divide; more pixels at once than this gain nothing. */
enum { LINES = 64, MOST_WIDTH = 1024 };

tess_status tess_pixel_network_create(tess_device *device, const tess_spectral_plan *plan, int64_t most,
                                      tess_pixel_network *n, tess_error *error)
{
    const int64_t width = tess_max_i64(1, tess_min_i64(MOST_WIDTH, tess_ceil_div(most, LINES)));
    *n = (tess_pixel_network){.device = device,
                              .pixels = LINES * width,
                              .channels = tess_spectral_gives(plan, tess_spectral_network_at(plan))};
    tess_status status = tess_spectral_scorer(plan, &n->net, error);
    if (status == TESS_OK)
        status = tess_bound_create(n->net, device, TESS_F32, &n->bound, error);
    if (status == TESS_OK)
        status = tess_net_plan_create(n->bound, (tess_plan_shape){.n = 1, .h = LINES, .w = width}, &n->plan,
                                      error);
    if (status != TESS_OK) {
        tess_pixel_network_destroy(n);
        return status;
    }
    n->weight_bytes = tess_bound_weight_bytes(n->bound);
    n->arena_bytes = tess_net_plan_arena_bytes(n->plan);
    n->workspace_bytes = tess_net_plan_workspace_bytes(n->plan);
    return TESS_OK;
}

void tess_pixel_network_destroy(tess_pixel_network *n)
{
    tess_net_plan_destroy(n->plan);
    tess_bound_destroy(n->bound);
    tess_net_destroy(n->net);
    n->plan = NULL;
    n->bound = NULL;
    n->net = NULL;
}

tess_status tess_pixel_network_load(tess_pixel_network *n, const tess_spectral_state *state, double *work,
                                    tess_error *error)
{
    tess_spectral_weights weights;
    TESS_TRY(tess_spectral_weights_open(state, n->net, work, &weights, error));
    tess_status status = tess_bound_load(n->bound, weights.weights, n->weights.data, error);
    tess_spectral_weights_close(&weights);
    return status == TESS_OK ? tess_net_plan_prepare(n->plan, error) : status;
}

void tess_pixel_network_run(tess_pixel_network *n, const float *at, int64_t pixels, float *scores)
{
    size_t in, out;
    tess_net_plan_input(n->plan, &in);
    tess_net_plan_output(n->plan, &out);
    char *arena = n->arena.data;
    for (int64_t first = 0; first < pixels; first += n->pixels) {
        const size_t some = (size_t)tess_min_i64(n->pixels, pixels - first);
        n->device->memory->copy(n->device, arena + in, at + first * n->channels,
                                some * (size_t)n->channels * sizeof(float), NULL);
        tess_net_plan_run(n->plan, arena, n->workspace.data, n->weights.data, NULL);
        n->device->memory->copy(n->device, scores + first, arena + out, some * sizeof(float), NULL);
    }
}
