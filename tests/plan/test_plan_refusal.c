/* test_plan_refusal.c: a table of jobs that are refused for memory. The planner must accept the number that the
 * message names, read back as a user would type it; it accepts the least limit, and refuses 64 KiB less. Halos depend
 * on the tiles: small tiles get larger ones, in every cut that the planner chooses. */
#define _GNU_SOURCE
#include <ctype.h>

#include "counter.h"
#include "job/common/prior.h"
#include "plan/limit.h"
#include "support.h"

static const uint64_t MIB = 1 << 20, KIB = 1 << 10;
static tess_error error;

static int threads = 0;

static bool open_engine(tess_engine *engine, const char *precision)
{
    tess_common common;
    tess_common_init(&common);
    common.device = "cpu";
    common.precision = precision;
    common.threads = threads;
    return tess_engine_open(engine, &test_counter, &common, &error) == TESS_OK;
}

/* The number in "`memory_limit` 10M would do", in bytes; 0 without it. */
static uint64_t named(void)
{
    const char *end = strstr(error.text, "M would do"), *at = end;
    while (at && at > error.text && isdigit((unsigned char)at[-1]))
        at--;
    const bool typed = at && at - error.text > 15 && strncmp(at - 15, "`memory_limit` ", 15) == 0;
    return typed ? strtoull(at, NULL, 10) * MIB : 0;
}

static tess_cut_request request_of(int64_t height, int64_t width, bool separate)
{
    return (tess_cut_request){.size = {1, height, width},
                              .planes = 1,
                              .in_row_bytes = (size_t)width * 3,
                              .out_row_bytes = (size_t)width * 3,
                              .row_scratch_bytes = separate ? 0 : 96,
                              .fixed_io_bytes = 1234,
                              .held_bytes = 54321,
                              .separate_memory = separate,
                              .in_pixel_bytes = 3,
                              .out_pixel_bytes = 3,
                              .host_limit = UINT64_MAX,
                              .halo = {0, TESS_HALO_AUTO, TESS_HALO_AUTO}};
}

static uint64_t least_of(const tess_cut_request *request, const tess_cut_plan *choice)
{
    return tess_mem_total(&choice->bytes) + request->others + request->other_weights +
           tess_cut_reserve(request->separate_memory);
}

static void check_image(tess_engine *engine, tess_engine_model *m, tess_cut_request request, const char *what)
{
    tess_cut_plan choice;
    request.limit = request.asked_limit = MIB;
    tess_status status = tess_cut_choose(m->bound, &m->model, engine->rates, &request, &choice, &error);
    const uint64_t enough = named(), least = least_of(&request, &choice);
    CHECK_MSG(status == TESS_OVER_LIMIT && strstr(error.text, "`memory_limit` 1M is too little") && enough,
              "%s: %s", what, error.text);
    const struct {
        uint64_t limit;
        bool accepted;
    } rows[] = {{enough, true}, {least, true}, {least + MIB / 2, true}, {least - 64 * KIB, false}};
    for (int i = 0; i < 4; i++) {
        request.limit = request.asked_limit = rows[i].limit;
        status = tess_cut_choose(m->bound, &m->model, engine->rates, &request, &choice, &error);
        CHECK_MSG(status == (rows[i].accepted ? TESS_OK : TESS_OVER_LIMIT), "%s: limit %llu, least %llu: %s",
                  what, (unsigned long long)rows[i].limit, (unsigned long long)least,
                  status == TESS_OK ? choice.reason : error.text);
        if (status == TESS_OK)
            CHECK(least_of(&request, &choice) <= rows[i].limit);
    }
    CHECK(enough >= least && enough - least < MIB);
}

static void test_images(const char *precision, bool separate)
{
    static const char *const models[] = {"random:drunet-gray", "random:unet", "random:dncnn",
                                         "drunet-color-small"};
    static const int64_t sizes[][2] = {{500, 333}, {40, 3000}, {1200, 907}};
    static const int64_t batches[] = {1, 0, 8}, halos[] = {TESS_HALO_AUTO, TESS_HALO_EXACT, 0},
                         tiles[] = {0, 100, TESS_TILE_WHOLE};
    dice d = {7};
    for (int m = 0; m < 4; m++) {
        tess_engine engine;
        tess_engine_model *model = NULL;
        const bool there = open_engine(&engine, precision) &&
                           tess_engine_model_of(&engine, models[m], &model, &error) == TESS_OK;
        if (!there) {
            CHECK_MSG(strcmp(precision, "bf16") == 0 && strstr(error.text, "bf16"), "%s",
                      error.text); /* not every CPU has it */
            tess_engine_close(&engine);
            return;
        }
        for (int s = 0; s < 3; s++)
            for (int h = 0; h < 9; h++) {
                tess_cut_request request = request_of(sizes[s][0], sizes[s][1], separate);
                char what[128];
                request.halo[TESS_HEIGHT] = request.halo[TESS_WIDTH] = halos[h % 3];
                request.batch = batches[h / 3];
                request.tile[TESS_HEIGHT] = request.tile[TESS_WIDTH] = h % 3 == 2 ? tiles[pick(&d, 0, 2)] : 0;
                request.others = pick(&d, 0, 2) ? 0 : 7 * MIB + 77;
                request.other_weights = pick(&d, 0, 2) ? 0 : 9 * MIB + 4096;
                snprintf(what, sizeof what, "%s %s %lldx%lld batch %lld halo %lld tile %lld separate %d",
                         models[m], precision, (long long)sizes[s][0], (long long)sizes[s][1],
                         (long long)request.batch, (long long)halos[h % 3],
                         (long long)request.tile[TESS_HEIGHT], separate);
                check_image(&engine, model, request, what);
            }
        tess_engine_close(&engine);
    }
}

static void test_volumes(void)
{
    tess_engine engine;
    CHECK(open_engine(&engine, "fp32"));
    static const char *const models[] = {"drunet-gray-small", "random:drunet-gray"};
    static const int64_t sizes[][3] = {{40, 120, 130}, {101, 64, 64}, {9, 700, 300}};
    for (int m = 0; m < 2; m++)
        for (int s = 0; s < 3; s++)
            for (int h = 0; h < 2; h++) {
                tess_prior prior = {
                    .engine = &engine,
                    .image = tess_tensor_3d(TESS_F32, 1, sizes[s][0], sizes[s][1], sizes[s][2], 1)};
                CHECK(tess_engine_volume_of(&engine, models[m], TESS_INFLATE_LEVEL, &prior.model, &error) ==
                      TESS_OK);
                tess_prior_request request = {.limit = MIB,
                                              .asked_limit = MIB,
                                              .others = 3 * MIB + 333,
                                              .job_needs = s == 2 ? (uint64_t)5 << 30 : 0,
                                              .halo = h ? TESS_HALO_EXACT : TESS_HALO_AUTO};
                CHECK(tess_prior_choose(&prior, &request, &error) == TESS_OVER_LIMIT);
                const uint64_t enough = named(), least = tess_mem_total(&prior.choice.bytes) +
                                                         request.others + tess_cut_reserve(false);
                CHECK_MSG(enough >= least && enough >= request.job_needs, "%s", error.text);
                request.limit = enough;
                CHECK_MSG(tess_prior_choose(&prior, &request, &error) == TESS_OK, "%s", error.text);
                request.limit = least;
                CHECK_MSG(tess_prior_choose(&prior, &request, &error) == TESS_OK, "%s", error.text);
                request.limit = least - 64 * KIB;
                CHECK(tess_prior_choose(&prior, &request, &error) == TESS_OVER_LIMIT);
            }
    tess_engine_close(&engine);
}

/* Each axis of each cut has the halo of its tiles, from the least limit to one that the whole image fits. */
static void test_halos(void)
{
    static const struct {
        const char *model;
        int64_t large, small; /* what the study says */
    } rows[] = {{"drunet-color-small", 32, 48}, {"drunet-gray-small", 32, 48}, {"random:dncnn", 16, 16}};
    for (int i = 0; i < 3; i++) {
        tess_engine_model *m = NULL;
        tess_engine engine;
        bool small_seen = false, large_seen = false;
        CHECK(open_engine(&engine, "fp32"));
        CHECK(tess_engine_model_of(&engine, rows[i].model, &m, &error) == TESS_OK);
        const int64_t step = tess_bound_alignment(m->bound), reach = tess_bound_reach(m->bound);
        tess_cut_request request = request_of(2000, 1500, false);
        tess_cut_plan choice;
        request.least = true;
        CHECK(tess_cut_choose(m->bound, &m->model, engine.rates, &request, &choice, &error) == TESS_OK);
        uint64_t limit = least_of(&request, &choice);
        request.least = false;
        for (int64_t tile = 16; tile < 2048; tile = tile * 5 / 4, limit = limit * 5 / 4)
            for (int asked = 0; asked < 2; asked++) {
                request.tile[TESS_HEIGHT] = request.tile[TESS_WIDTH] = asked ? tile : 0;
                request.limit = asked ? UINT64_MAX / 2 : limit;
                CHECK(tess_cut_choose(m->bound, &m->model, engine.rates, &request, &choice, &error) ==
                      TESS_OK);
                const tess_axis *axes[] = {&choice.rows, &choice.cols};
                for (int a = 0; a < 2; a++) {
                    const bool small = axes[a]->size < 160 * axes[a]->tiles;
                    const int64_t right =
                        tess_round_up(tess_min_i64(small ? rows[i].small : rows[i].large, reach), step);
                    if (axes[a]->tiles == 1)
                        continue;
                    *(small ? &small_seen : &large_seen) = true;
                    CHECK_MSG(axes[a]->halo == right, "%s: %lld tiles of %lld have a halo of %lld, not %lld",
                              rows[i].model, (long long)axes[a]->tiles, (long long)axes[a]->size,
                              (long long)axes[a]->halo, (long long)right);
                    CHECK(choice.halo >= axes[a]->halo);
                }
            }
        CHECK(small_seen && large_seen);
        tess_engine_close(&engine);
    }
}

static void test_words(void)
{
    static const struct {
        uint64_t bytes;
        const char *words, *enough;
    } rows[] = {
        {9 << 20, "9M", "9M"},     {(uint64_t)3 << 29, "1.5G", "1536M"}, {(uint64_t)2 << 30, "2G", "2048M"},
        {640 << 10, "640K", "1M"}, {9437185, "9437185 bytes", "10M"},    {0, "0 bytes", "0M"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        CHECK(strcmp(tess_size_words(rows[i].bytes).text, rows[i].words) == 0 &&
              strcmp(tess_size_enough(rows[i].bytes).text, rows[i].enough) == 0);
}

/* The reason says what became of a tile that was asked for. */
static void test_reasons(void)
{
    static const struct {
        int64_t height, width;
        const char *reason;
    } rows[] = {
        {128, 128, "tile as asked"},
        {100, 100, "tile 100 x 100 asked, 96 x 96 used: tiles are alike and lie on the network's grid of 32"},
        {10, 640, "tile 10 x 640 asked, 32 x 640 used: tiles are alike and lie on the network's grid of 32"},
        {9999, 128, "tile 9999 x 128 asked, 640 x 128 used: the image is no larger"},
        {TESS_TILE_WHOLE, TESS_TILE_WHOLE, "the whole image, as asked"}};
    tess_engine engine;
    tess_engine_model *m = NULL;
    CHECK(open_engine(&engine, "fp32"));
    CHECK(tess_engine_model_of(&engine, "drunet-color-small", &m, &error) == TESS_OK);
    const bool known = tess_bound_alignment(m->bound) == 32; /* other kernels, another grid */
    for (size_t i = 0; known && i < sizeof rows / sizeof rows[0]; i++) {
        tess_cut_request request = request_of(640, 640, false);
        tess_cut_plan choice;
        request.limit = UINT64_MAX / 2;
        request.tile[TESS_HEIGHT] = rows[i].height;
        request.tile[TESS_WIDTH] = rows[i].width;
        CHECK(tess_cut_choose(m->bound, &m->model, engine.rates, &request, &choice, &error) == TESS_OK);
        CHECK_MSG(strcmp(choice.reason, rows[i].reason) == 0, "%s", choice.reason);
    }
    tess_engine_close(&engine);
}

int main(void)
{
    test_words();
    for (int separate = 0; separate < 2; separate++) {
        test_images("fp32", separate);
        test_images("bf16", separate);
    }
    setenv("TESSERA_ISA", "reference", 1); /* kernels that need other workspaces, or none */
    test_images("fp32", false);
    unsetenv("TESSERA_ISA");
    threads = 96; /* workspaces that outweigh everything else */
    test_images("fp32", false);
    test_images("bf16", false);
    threads = 0;
    test_reasons();
    test_halos();
    test_volumes();
    return check_end();
}
