/* Finds how small the halo of a volume may be, for the 3-D entry in src/model/halo.c.
 *
 *   halo_volume MODEL halves|level DEPTH SIDE TILE      e.g. halo_volume drunet-gray-small halves 48 160 48
 *
 * The network denoises Shepp and Logan's head of DEPTH x SIDE x SIDE voxels, with noise of 15, 25 and 50 / 255, as a
 * whole, in slabs of 8 and 16 slices, and in columns of TILE x TILE voxels. Each halo gives one JSON line: the PSNR
 * against the truth, tiled and whole, and the PSNR between the two. A halo is large enough if the first two differ by
 * less than 0.01 dB and the third is above 55 dB. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "job/common/prior.h"
#include "physics/phantom.h"
#include "rates.h"

static tess_memory counter;

static double psnr(const float *a, const float *b, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        const double difference = (double)fminf(fmaxf(a[i], 0), 1) - (double)fminf(fmaxf(b[i], 0), 1);
        sum += difference * difference;
    }
    return sum > 0 ? -10 * log10(sum / (double)count) : 200;
}

typedef struct study {
    tess_engine engine;
    tess_prior prior;
    float *truth, *noisy, *whole, *tiled;
    int64_t count;
    tess_error error;
} study;

static void denoise(study *s, const tess_prior_request *request, double sigma, float *out)
{
    tess_prior *p = &s->prior;
    need(tess_prior_choose(p, request, &s->error), &s->error);
    need(tess_prior_open(p, &s->error), &s->error);
    need(tess_prior_denoise(p, s->noisy, out, sigma, &s->error), &s->error);
    tess_prior_close(p);
}

static void compare(study *s, const char *cut, const tess_prior_request *request, double sigma)
{
    const double base = psnr(s->whole, s->truth, s->count);
    denoise(s, request, sigma, s->tiled);
    const double to_truth = psnr(s->tiled, s->truth, s->count), to_whole = psnr(s->tiled, s->whole, s->count);
    const tess_cut_plan *c = &s->prior.choice;
    printf(
        "{\"study\":\"halo\",\"engine\":\"tessera\",\"cut\":\"%s\",\"sigma\":%.0f,\"tile\":[%lld,%lld,%lld],"
        "\"halo\":%lld,\"psnr_whole_db\":%.4f,\"psnr_tiled_db\":%.4f,\"tiled_to_whole_db\":%.2f,"
        "\"enough\":%s}\n",
        cut, 255 * sigma, (long long)tess_axis_largest_tile(&c->depth),
        (long long)tess_axis_largest_tile(&c->rows), (long long)tess_axis_largest_tile(&c->cols),
        (long long)(c->depth.tiles > 1 ? c->halo_depth : c->halo), base, to_truth, to_whole,
        fabs(base - to_truth) < 0.01 && to_whole > 55 ? "true" : "false");
    fflush(stdout);
}

static void one_level(study *s, double sigma, int64_t depth, int64_t side, int64_t tile)
{
    tess_prior_request request = {.limit = UINT64_MAX, .tile_height = TESS_TILE_WHOLE};
    tess_rng_normal((tess_rng_key){1, (uint32_t)lrint(255 * sigma), 0}, 0, s->count, s->noisy);
    for (int64_t i = 0; i < s->count; i++)
        s->noisy[i] = s->truth[i] + (float)sigma * s->noisy[i];
    denoise(s, &request, sigma, s->whole);
    request.tile_height = request.tile_width = side;
    for (request.tile_depth = 8; request.tile_depth <= 16 && request.tile_depth < depth;
         request.tile_depth *= 2)
        for (request.halo = 0; request.halo <= 16; request.halo += 8)
            compare(s, "slabs", &request, sigma);
    request.tile_height = request.tile_width = tile;
    request.tile_depth = depth;
    int64_t last = -1;
    for (int64_t halo = 8; halo <= 64; halo += 8) {
        request.halo = tess_round_up(halo, tess_bound_alignment(s->prior.model->bound));
        if (request.halo != last)
            compare(s, "columns", &request, sigma);
        last = request.halo;
    }
}

int main(int argc, char **argv)
{
    study s;
    memset(&s, 0, sizeof s);
    if (argc != 6) {
        fputs("usage: halo_volume MODEL halves|level DEPTH SIDE TILE\n", stderr);
        return 2;
    }
    const int64_t depth = atoll(argv[3]), side = atoll(argv[4]), tile = atoll(argv[5]);
    const tess_inflation how = strcmp(argv[2], "level") == 0 ? TESS_INFLATE_LEVEL : TESS_INFLATE_HALVES;
    tess_common common;
    tess_common_init(&common);
    common.device = "cpu";
    need(tess_engine_open(&s.engine, &counter, &common, &s.error), &s.error);
    s.prior.engine = &s.engine;
    s.prior.image = tess_tensor_3d(TESS_F32, 1, depth, side, side, 1);
    need(tess_engine_volume_of(&s.engine, argv[1], how, &s.prior.model, &s.error), &s.error);
    need(tess_engine_load(&s.engine, &s.error), &s.error);
    s.count = depth * side * side;
    float *memory = malloc(4 * (size_t)s.count * sizeof *memory);
    if (!memory || depth < 8 || side < 8)
        return 1;
    s.truth = memory;
    s.noisy = memory + s.count;
    s.whole = memory + 2 * s.count;
    s.tiled = memory + 3 * s.count;
    tess_phantom_3d(depth, side, side, 2, s.truth);
    static const double levels[] = {15, 25, 50};
    for (int i = 0; i < 3; i++)
        one_level(&s, levels[i] / 255, depth, side, tile);
    tess_engine_unload(&s.engine);
    tess_engine_close(&s.engine);
    free(memory);
    return 0;
}
