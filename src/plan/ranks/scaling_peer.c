/* deepinv's scheme: overlapping tiles dealt out to the ranks in turn, in batches, with whole images summed over all ranks. */
#include <math.h>

#include "base/checked.h"
#include "plan/machine.h"
#include "plan/ranks/scaling.h"

/* The op as PyTorch would do it: a 3-D network made of a 2-D one has dense kernels there, while our plans compute the slice
 * in the middle, and the others by a sum (net/fold_slices.c). */
static double op_seconds(const tess_rates *rates, const tess_op *op, bool volume, bool *measured)
{
    tess_op dense = *op;
    if (op->kind == TESS_OP_SIDE_SUM)
        return 0;
    if (volume && op->kind == TESS_OP_CONV && op->kernel[TESS_HEIGHT] == 3)
        dense.kernel[TESS_DEPTH] = 3;
    return tess_rates_op_seconds(rates, &dense, measured);
}

static tess_status pass_seconds(const tess_scale_setup *setup, tess_plan_shape shape, double *seconds,
                                double *bytes, bool *measured, tess_error *error)
{
    tess_net_plan *plan = NULL;
    TESS_TRY(tess_net_plan_create(setup->bound, shape, &plan, error));
    *seconds = 0;
    for (int i = 0; i < tess_net_plan_op_count(plan); i++)
        *seconds += op_seconds(setup->rates, tess_net_plan_op(plan, i), shape.d > 1, measured);
    *bytes = (double)tess_net_plan_arena_bytes(plan);
    tess_net_plan_destroy(plan);
    return TESS_OK;
}

/* A window of a tile, padded by the network to twice its grid where its grid does not divide it. */
static int64_t window_of(int64_t size, int64_t tile, int64_t halo, int64_t grid)
{
    const int64_t window = tile ? tess_min_i64(tile, size) + 2 * halo : size;
    return window % grid ? tess_round_up(window, 2 * grid) : window;
}

static tess_status denoise(const tess_scale_setup *setup, const tess_scale_problem *p,
                           const tess_scale_peer *peer, tess_scale_point *point, tess_error *error)
{
    const int64_t size[TESS_SPATIAL] = {p->depth, p->height, p->width};
    int64_t tiles = 1, window[TESS_SPATIAL];
    for (int a = 0; a < TESS_SPATIAL; a++) {
        const bool cut = peer->tile[a] > 0 && size[a] > 1;
        tiles *= cut ? tess_ceil_div(size[a], peer->tile[a]) : 1;
        window[a] = window_of(size[a], cut ? peer->tile[a] : 0, cut ? peer->halo[a] : 0, setup->grid[a]);
    }
    const int64_t mine = tess_ceil_div(tiles, point->ranks),
                  batch = tess_min_i64(tess_max_i64(peer->batch, 1), mine);
    point->used = (int)tess_min_i64(tiles, point->ranks);
    point->rows = window[TESS_HEIGHT];
    for (int rest = 0; rest < 2; rest++) { /* full batches, and one of what is left */
        const int64_t n = rest ? mine % batch : batch, runs = rest ? 1 : mine / batch;
        const tess_plan_shape shape = {
            .n = n, .h = window[TESS_HEIGHT], .w = window[TESS_WIDTH], .d = window[TESS_DEPTH]};
        double seconds = 0, bytes = 0;
        if (n > 0)
            TESS_TRY(pass_seconds(setup, shape, &seconds, &bytes, &point->measured, error));
        point->denoiser += (double)runs * seconds;
        point->bytes = fmax(point->bytes, bytes);
    }
    return TESS_OK;
}

tess_status tess_scale_deepinv(const tess_scale_setup *setup, const tess_scale_problem *p,
                               const tess_scale_peer *peer, int ranks, tess_scale_point *point,
                               tess_error *error)
{
    const double pixels = (double)p->depth * (double)p->height * (double)p->width,
                 bytes = pixels * (double)p->channels * sizeof(float),
                 sum = ranks > 1 ? peer->call + tess_links_all_reduce(&setup->links, ranks, bytes) : 0;
    *point = (tess_scale_point){.ranks = ranks, .avoided = 1, .measured = true};
    TESS_TRY(denoise(setup, p, peer, point, error));
    /* What the file has was measured with images; of volumes the denoiser takes more than 99 %. */
    const double flat = p->depth > 1 ? 0 : pixels;
    point->gradient = peer->gradient_per_pixel * flat *
                      (double)tess_ceil_div(peer->operators, tess_min_i64(peer->operators, ranks)) /
                      (double)peer->operators;
    point->other = peer->repeated_per_pixel * flat;
    point->gradient_communication = point->denoiser_communication = sum;
    /* Image, padded image, canvas, gradient and denoised image are whole on every rank. */
    point->bytes += (double)tess_bound_weight_bytes(setup->bound) + 5 * bytes;
    point->seconds = point->gradient + point->denoiser + point->other + 2 * sum;
    return TESS_OK;
}

tess_status tess_scale_peer_read(const char *path, tess_scale_peer *peer, tess_error *error)
{
    tess_json *json = NULL;
    TESS_TRY(tess_machine_json(path, &json, error));
    const tess_json *object = tess_json_get(json, "peer");
    double operators = 0;
    const struct {
        const char *key;
        double *to;
    } keys[] = {{"operators", &operators},
                {"gradient_seconds_per_pixel", &peer->gradient_per_pixel},
                {"repeated_seconds_per_pixel", &peer->repeated_per_pixel},
                {"call_seconds", &peer->call}};
    tess_status status = TESS_OK;
    for (size_t i = 0; i < sizeof keys / sizeof *keys && status == TESS_OK; i++) {
        *keys[i].to = tess_json_get_double(object, keys[i].key, -1);
        if (!(*keys[i].to >= (i ? 0 : 1)) || !isfinite(*keys[i].to))
            status = tess_fail(error, TESS_BAD_INPUT, "%s: peer.%s: must be a number %s", path, keys[i].key,
                               i ? "from 0 on" : "from 1 on");
    }
    peer->operators = (int64_t)operators;
    tess_json_free(json);
    return status;
}
