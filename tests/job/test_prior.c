/* test_prior.c: a 3-D network as the denoiser of a solver. Windows with exact halos repeat the whole volume bit for
 * bit, also for sizes that no grid divides; single slices give the result of a 2-D network; limits are kept, and less
 * memory never means less work. */
#define _POSIX_C_SOURCE 200809L
#include <unistd.h>

#include "counter.h"
#include "job/common/prior.h"
#include "support.h"

static char path[512];
static tess_error error;

static void open_engine(tess_engine *engine)
{
    tess_common common;
    tess_common_init(&common);
    common.device = "cpu";
    CHECK_MSG(tess_engine_open(engine, &test_counter, &common, &error) == TESS_OK, "%s", error.text);
}

static void denoise(tess_prior *prior, const tess_prior_request *request, const float *in, float *out)
{
    CHECK_MSG(tess_prior_choose(prior, request, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_prior_open(prior, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_prior_denoise(prior, in, out, 0.1, &error) == TESS_OK, "%s", error.text);
    tess_prior_close(prior);
}

/* The whole against tiles with exact halos; returns how many voxels differ. */
static int64_t differing(tess_engine *engine, tess_engine_model *model, tess_tensor image,
                         const int64_t tile[3], bool *cut)
{
    tess_prior prior = {.engine = engine, .model = model, .image = image};
    const int64_t count = image.d * image.h * image.w;
    float *in = room((size_t)count * sizeof *in), *whole = room((size_t)count * sizeof *whole),
          *tiled = room((size_t)count * sizeof *tiled);
    tess_rng_normal((tess_rng_key){5, 0, 0}, 0, count, in);
    const tess_prior_request one = {.limit = UINT64_MAX, .tile_height = TESS_TILE_WHOLE},
                             many = {.limit = UINT64_MAX,
                                     .tile_depth = tile[0],
                                     .tile_height = tile[1],
                                     .tile_width = tile[2],
                                     .halo = TESS_HALO_EXACT};
    denoise(&prior, &one, in, whole);
    CHECK(prior.choice.depth.tiles * prior.choice.rows.tiles * prior.choice.cols.tiles == 1);
    denoise(&prior, &many, in, tiled);
    *cut = tess_axis_largest_window(&prior.choice.depth) < prior.choice.depth.size;
    if (tile[1] < image.h)
        *cut = *cut && tess_axis_largest_window(&prior.choice.rows) < prior.choice.rows.size &&
               tess_axis_largest_window(&prior.choice.cols) < prior.choice.cols.size;
    int64_t other = 0;
    for (int64_t i = 0; i < count; i++)
        other += memcmp(&whole[i], &tiled[i], sizeof whole[i]) != 0;
    free(in), free(whole), free(tiled);
    return other;
}

/* Kernels of three slices throughout, wide enough for Winograd: all three axes are cut. */
static void test_dense(void)
{
    tess_engine engine;
    tess_engine_model *model = NULL;
    tensor_list list = {.volume = true};
    bool cut = false;
    add_conv(&list, "in_conv", 32, 1, 3, true);
    add_conv(&list, "conv_list.0", 32, 32, 3, true);
    add_conv(&list, "out_conv", 1, 32, 3, true);
    save_tensors(&list, path);
    open_engine(&engine);
    CHECK_MSG(tess_engine_model_of(&engine, path, &model, &error) == TESS_OK, "%s", error.text);
    CHECK(model->model.volume && model->model.halo_depth == model->model.halo && !model->model.halo_seen);
    CHECK_MSG(tess_engine_load(&engine, &error) == TESS_OK, "%s", error.text);
    const int64_t other = differing(&engine, model, tess_tensor_3d(TESS_F32, 1, 21, 43, 38, 1),
                                    (const int64_t[]){5, 12, 12}, &cut);
    CHECK_MSG(cut && other == 0, "windows %s; %lld voxels differ", cut ? "cut" : "not cut", (long long)other);
    tess_engine_unload(&engine);
    tess_engine_close(&engine);
    unlink(path);
}

/* A 2-D network made 3-D: the reach in depth is that of the side taps; the last slices are repeated ones. */
static void test_inflated(void)
{
    tess_engine engine;
    tess_engine_model *model = NULL;
    bool cut = false;
    open_engine(&engine);
    CHECK_MSG(tess_engine_volume_of(&engine, "drunet-gray-small", TESS_INFLATE_LEVEL, &model, &error) ==
                  TESS_OK,
              "%s", error.text);
    CHECK(model->model.volume && model->model.halo_seen && model->model.halo_depth == 0);
    CHECK_MSG(tess_engine_load(&engine, &error) == TESS_OK, "%s", error.text);
    const int64_t other = differing(&engine, model, tess_tensor_3d(TESS_F32, 1, 501, 11, 16, 1),
                                    (const int64_t[]){40, 16, 16}, &cut);
    CHECK_MSG(cut && other == 0, "windows %s; %lld voxels differ", cut ? "cut" : "not cut", (long long)other);
    /* The same network on slices: another model in the same engine, and depth is not cut but counted off. */
    tess_engine_model *flat = NULL;
    CHECK(tess_engine_model_of(&engine, "drunet-gray-small", &flat, &error) == TESS_OK && flat != model);
    tess_prior slices = {
        .engine = &engine, .model = flat, .image = tess_tensor_3d(TESS_F32, 1, 5, 24, 24, 1)};
    const tess_prior_request request = {.limit = UINT64_MAX, .halo = TESS_HALO_AUTO};
    CHECK(tess_prior_choose(&slices, &request, &error) == TESS_OK && slices.choice.depth.tiles == 5);
    const tess_prior_request deep = {
        .limit = UINT64_MAX, .tile_depth = 2, .tile_height = 16, .tile_width = 16, .halo = TESS_HALO_AUTO};
    CHECK(tess_prior_choose(&slices, &deep, &error) == TESS_BAD_OPTION);
    tess_engine_unload(&engine);
    tess_engine_close(&engine);
}

/* 501^3 at full width, from all that it could use down to what is too little. */
static void test_limits(void)
{
    const uint64_t GIB = (uint64_t)1 << 30;
    tess_engine engine;
    tess_prior prior = {.engine = &engine, .image = tess_tensor_3d(TESS_F32, 1, 501, 501, 501, 1)};
    open_engine(&engine);
    CHECK_MSG(tess_engine_volume_of(&engine, "random:drunet-gray", TESS_INFLATE_HALVES, &prior.model,
                                    &error) == TESS_OK,
              "%s", error.text);
    for (int exact = 0; exact < 2; exact++) {
        double before = 0;
        bool refused = false;
        for (uint64_t limit = 128 * GIB; limit >= GIB / 2; limit = limit / 4 * 3) {
            const tess_prior_request request = {
                .limit = limit, .others = GIB / 4, .halo = exact ? TESS_HALO_EXACT : TESS_HALO_AUTO};
            const tess_status status = tess_prior_choose(&prior, &request, &error);
            if (status == TESS_OVER_LIMIT) {
                refused = true;
                continue;
            }
            const tess_cut_plan *c = &prior.choice;
            const double work = (double)tess_axis_total_window(&c->depth) *
                                (double)tess_axis_total_window(&c->rows) *
                                (double)tess_axis_total_window(&c->cols);
            CHECK_MSG(status == TESS_OK && !refused, "%s", error.text);
            CHECK(tess_mem_total(&c->bytes) + request.others <= limit);
            CHECK_MSG(work >= before, "%.0f voxels in %.1f GiB, %.0f in more", work,
                      (double)limit / (double)GIB, before);
            /* Slabs cost nothing as long as the thinnest fits. */
            if (!exact && limit > 2 * GIB)
                CHECK(work == 504.0 * 504 * 504 && c->rows.tiles == 1);
            before = work;
        }
        CHECK(refused);
    }
    tess_engine_close(&engine);
}

int main(void)
{
    snprintf(path, sizeof path, "/tmp/tessera-test-prior-%d.safetensors", (int)getpid());
    test_dense();
    test_inflated();
    test_limits();
    return check_end();
}
