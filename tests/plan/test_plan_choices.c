/* test_plan_choices.c: the planner's choices as a table: images, slices and volumes by limit, tile, halo and batch.
 * Reference kernels on one thread and fixed rates give the same numbers on every machine. A failing row prints the
 * choice in the form of the table: paste it only if the change is intended. */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <unistd.h>

#include "counter.h"
#include "job/common/engine.h"
#include "plan/cut.h"
#include "support.h"

enum { AUTO = TESS_HALO_AUTO, EXACT = TESS_HALO_EXACT, WHOLE = TESS_TILE_WHOLE };

static const uint64_t MIB = 1 << 20, KIB = 1 << 10;
static tess_error error;

/* The memory besides the network's: rows of a file in host memory; the same for a device with separate memory, also
 * if the host has 1 MiB for the rows; only other images, as in a solver. */
typedef enum surroundings { ROWS, STAGES, LITTLE_HOST, SOLVER } surroundings;

typedef struct asked {
    const char *model; /* "3-D " before its name: the weights are made 3-D */
    surroundings around;
    int64_t size[TESS_SPATIAL], tile[TESS_SPATIAL], halo, batch;
    uint64_t limit; /* in KiB */
} asked;

typedef struct chosen {
    int64_t tiles[TESS_SPATIAL], largest[TESS_SPATIAL]; /* how many, and the largest tile */
    int64_t halo, halo_depth, batch;
    uint64_t bytes;
    double seconds;
    const char *reason;
} chosen;

/* clang-format off */
static const struct {
    asked asked;
    chosen chosen;
} choices[] = {
    /* The whole fits; just, and just not. */
    {{"random:dncnn", ROWS, {1, 300, 200}, {0}, AUTO, 0, 37838},
     {{1, 1, 1}, {1, 300, 200}, 0, 0, 1, 34550833, 0.0022, "the whole image fits the limit of 37 MiB"}},
    {{"random:dncnn", ROWS, {1, 300, 200}, {0}, AUTO, 0, 37834},
     {{1, 2, 1}, {1, 150, 200}, 16, 0, 1, 20509745, 0.003328,
      "2 x 1 tiles fit the limit of 37 MiB; halos cost 11 % more pixels"}},
    /* Less and less memory. */
    {{"random:drunet", ROWS, {1, 1200, 907}, {0}, AUTO, 1, 800 * 1024},
     {{1, 2, 1}, {1, 600, 912}, 64, 0, 1, 602317873, 0.03639454,
      "2 x 1 tiles fit the limit of 800 MiB; halos cost 11 % more pixels"}},
    {{"random:drunet", ROWS, {1, 1200, 907}, {0}, AUTO, 1, 400 * 1024},
     {{1, 2, 2}, {1, 600, 456}, 64, 0, 1, 402375729, 0.0470043,
      "2 x 2 tiles fit the limit of 400 MiB; halos cost 26 % more pixels"}},
    {{"random:drunet", ROWS, {1, 1200, 907}, {0}, AUTO, 1, 200 * 1024},
     {{1, 6, 5}, {1, 248, 224}, 64, 0, 1, 202335281, 0.1608899,
      "6 x 5 tiles fit the limit of 200 MiB; halos cost 139 % more pixels"}},
    {{"random:drunet", ROWS, {1, 1200, 907}, {0}, AUTO, 1, 145966},
     {{1, 150, 114}, {1, 8, 8}, 64, 0, 1, 145273905, 62.048958,
      "150 x 114 tiles fit the limit of 143 MiB; halos cost 26941 % more pixels"}},
    {{"drunet-color-small", ROWS, {1, 40, 3000}, {0}, AUTO, 0, 50 * 1024},
     {{1, 1, 8}, {1, 40, 400}, 32, 0, 1, 47916081, 0.035344065,
      "1 x 8 tiles fit the limit of 50 MiB; halos cost 15 % more pixels"}},
    /* Small tiles of weights that the halo study knows have larger halos; other weights have twice the halo. */
    {{"drunet-gray-small", ROWS, {1, 2000, 1500}, {0}, AUTO, 1, 83 * 1024},
     {{1, 8, 6}, {1, 280, 272}, 32, 0, 1, 81970225, 0.32136386, "8 x 6 tiles fit the limit of 83 MiB; halos cost 48 % more pixels"}},
    {{"drunet-gray-small", ROWS, {1, 2000, 1500}, {0}, AUTO, 1, 62 * 1024},
     {{1, 31, 9}, {1, 128, 192}, 64, 0, 1, 59356209, 1.4418551, "31 x 9 tiles fit the limit of 62 MiB; halos cost 291 % more pixels"}},
    {{"random:drunet-gray", ROWS, {1, 2000, 1500}, {0}, AUTO, 1, 300 * 1024},
     {{1, 6, 4}, {1, 376, 408}, 64, 0, 1, 296924209, 0.2002398,
      "6 x 4 tiles fit the limit of 300 MiB; halos cost 66 % more pixels"}},
    /* A solver's halo is twice that, and at most what an output depends on. */
    {{"drunet-gray-small", SOLVER, {1, 2000, 1500}, {0}, AUTO, 1, 83 * 1024},
     {{1, 9, 8}, {1, 272, 240}, 64, 0, 1, 79679488, 0.4988682,
      "9 x 8 tiles fit the limit of 83 MiB; halos cost 141 % more pixels"}},
    {{"random:dncnn", SOLVER, {1, 2000, 1500}, {0}, AUTO, 1, 160 * 1024},
     {{1, 4, 3}, {1, 510, 507}, 20, 0, 1, 149037056, 0.078992,
      "4 x 3 tiles fit the limit of 160 MiB; halos cost 12 % more pixels"}},
    /* Lines that must be corrected before the cut fits. */
    {{"random:unet", ROWS, {1, 1408, 485}, {0}, 24, 1, 82 * 1024},
     {{1, 10, 3}, {1, 160, 176}, 24, 0, 1, 78079025, 0.04592289,
      "10 x 3 tiles fit the limit of 82 MiB; halos cost 56 % more pixels"}},
    {{"random:dncnn", ROWS, {1, 616, 1422}, {0}, 24, 1, 13 * 1024},
     {{1, 14, 20}, {1, 65, 93}, 24, 0, 1, 9311281, 0.3378832,
      "14 x 20 tiles fit the limit of 13 MiB; halos cost 230 % more pixels"}},
    /* Exact and given halos. Without one all cuts compute the same, and the columns are cut. */
    {{"random:unet", ROWS, {1, 1000, 1000}, {0}, EXACT, 1, 100 * 1024},
     {{1, 7, 8}, {1, 184, 168}, 56, 0, 1, 99099697, 0.094744737,
      "7 x 8 tiles fit the limit of 100 MiB; halos cost 198 % more pixels"}},
    {{"random:unet", ROWS, {1, 1000, 1000}, {0}, 10, 1, 100 * 1024},
     {{1, 5, 5}, {1, 216, 216}, 16, 0, 1, 99533873, 0.041749671,
      "5 x 5 tiles fit the limit of 100 MiB; halos cost 27 % more pixels"}},
    {{"random:unet", ROWS, {1, 1000, 1000}, {0}, 0, 1, 100 * 1024},
     {{1, 1, 25}, {1, 1000, 40}, 0, 0, 1, 86860849, 0.039234375,
      "1 x 25 tiles fit the limit of 100 MiB; halos cost 0 % more pixels"}},
    /* Batches: chosen, given, and more than the columns can fill. */
    {{"drunet-gray-small", ROWS, {1, 640, 960}, {0, 64, 64}, AUTO, 0, 4096 * 1024},
     {{1, 10, 15}, {1, 64, 64}, 64, 0, 8, 154883121, 0.22617869, "tile as asked"}},
    {{"drunet-gray-small", ROWS, {1, 640, 960}, {0, 64, 64}, AUTO, 3, 4096 * 1024},
     {{1, 10, 15}, {1, 64, 64}, 64, 0, 3, 84104241, 0.34317869, "tile as asked"}},
    {{"drunet-gray-small", ROWS, {1, 640, 960}, {0}, AUTO, 7, 83 * 1024},
     {{1, 4, 5}, {1, 176, 216}, 32, 0, 2, 82183217, 0.077198784, "4 x 5 tiles fit the limit of 83 MiB; halos cost 65 % more pixels"}},
    {{"random:dncnn", ROWS, {1, 640, 960}, {0, 320, 320}, 0, 50, 4096 * 1024},
     {{1, 2, 3}, {1, 320, 320}, 0, 0, 3, 167420977, 0.014288, "tile as asked"}},
    /* Tiles as asked. */
    {{"random:unet", ROWS, {1, 500, 400}, {0, 128, 96}, AUTO, 1, 4096 * 1024},
     {{1, 4, 5}, {1, 128, 80}, 56, 0, 1, 88695857, 0.03057783,
      "tile 128 x 96 asked, 128 x 80 used: tiles are alike and lie on the network's grid of 8"}},
    {{"random:unet", ROWS, {1, 500, 400}, {0, 9999, 100}, AUTO, 1, 4096 * 1024},
     {{1, 1, 5}, {1, 504, 80}, 56, 0, 1, 148149297, 0.009946698,
      "tile 9999 x 100 asked, 504 x 80 used: tiles are alike and lie on the network's grid of 8"}},
    {{"random:unet", ROWS, {1, 500, 400}, {0, WHOLE, WHOLE}, AUTO, 1, 4096 * 1024},
     {{1, 1, 1}, {1, 504, 400}, 0, 0, 1, 270193713, 0.00306165, "the whole image, as asked"}},
    /* A device with separate memory: it has stages for windows and tiles. */
    {{"random:drunet", STAGES, {1, 1200, 907}, {0}, AUTO, 0, 400 * 1024},
     {{1, 2, 2}, {1, 600, 456}, 64, 0, 1, 397598720, 0.0470043,
      "2 x 2 tiles fit the limit of 400 MiB; halos cost 26 % more pixels"}},
    {{"random:dncnn", STAGES, {1, 64, 5000}, {0}, AUTO, 0, 40 * 1024},
     {{1, 1, 5}, {1, 64, 1010}, 16, 0, 1, 37482496, 0.01156384,
      "1 x 5 tiles fit the limit of 40 MiB; halos cost 3 % more pixels"}},
    {{"random:dncnn", LITTLE_HOST, {1, 1200, 907}, {0}, AUTO, 1, 4096 * 1024},
     {{1, 16, 1}, {1, 89, 907}, 16, 0, 1, 53112832, 0.0464752,
      "16 x 1 tiles fit the limit of 4096 MiB; halos cost 40 % more pixels"}},
    /* Slices of a volume, one by one, whatever the depth of the tile. */
    {{"random:drunet-gray", SOLVER, {20, 256, 256}, {0}, AUTO, 1, 4096 * 1024},
     {{20, 1, 1}, {1, 256, 256}, 0, 0, 1, 180887552, 0.0964608, "the whole image fits the limit of 4096 MiB"}},
    {{"random:drunet-gray", SOLVER, {20, 256, 256}, {0}, 40, 0, 170 * 1024},
     {{20, 1, 2}, {1, 256, 128}, 40, 0, 1, 163586048, 0.1706048,
      "1 x 2 tiles fit the limit of 170 MiB; halos cost 31 % more pixels"}},
    {{"random:drunet-gray", SOLVER, {20, 256, 256}, {64, 64, 64}, 16, 2, 4096 * 1024},
     {{20, 4, 4}, {1, 64, 64}, 16, 0, 2, 144711680, 0.5733712, "tile as asked"}},
    /* Volumes: the whole, and less and less memory. */
    {{"3-D drunet-gray-small", SOLVER, {40, 120, 130}, {0}, AUTO, 1, 295373},
     {{1, 1, 1}, {40, 120, 136}, 0, 0, 1, 295120896, 0.040758375, "the whole volume fits the limit of 288 MiB"}},
    {{"3-D drunet-gray-small", SOLVER, {40, 120, 130}, {0}, AUTO, 1, 295369},
     {{2, 1, 1}, {24, 120, 136}, 0, 0, 1, 193806336, 0.048258375, "2 x 1 x 1 windows fit the limit of 288 MiB; halos cost 0 % more voxels"}},
    {{"3-D drunet-gray-small", SOLVER, {40, 120, 130}, {0}, AUTO, 1, 143 * 1024},
     {{5, 1, 1}, {8, 120, 136}, 0, 0, 1, 92491776, 0.070758375, "5 x 1 x 1 windows fit the limit of 143 MiB; halos cost 0 % more voxels"}},
    {{"3-D random:drunet-gray", SOLVER, {64, 500, 300}, {0}, AUTO, 1, 2048 * 1024},
     {{4, 1, 1}, {16, 504, 304}, 0, 0, 1, 2028584960, 0.43442517,
      "4 x 1 x 1 windows fit the limit of 2048 MiB; halos cost 0 % more voxels"}},
    {{"3-D random:drunet-gray", SOLVER, {64, 500, 300}, {0}, AUTO, 1, 1024 * 1024},
     {{8, 2, 1}, {8, 256, 304}, 128, 0, 1, 857022464, 0.71589192,
      "8 x 2 x 1 windows fit the limit of 1024 MiB; halos cost 51 % more voxels"}},
    {{"3-D random:drunet-gray", SOLVER, {64, 500, 300}, {0}, AUTO, 1, 560397},
     {{8, 31, 6}, {8, 136, 136}, 128, 0, 1, 566505472, 43.768629,
      "8 x 31 x 6 windows fit the limit of 547 MiB; halos cost 8361 % more voxels"}},
    /* Without a halo the depth is cut, then the rows. */
    {{"3-D drunet-gray-small", SOLVER, {100, 100, 100}, {0}, 0, 1, 83 * 1024},
     {{13, 1, 1}, {8, 104, 104}, 0, 0, 1, 75407360, 0.15480875, "13 x 1 x 1 windows fit the limit of 83 MiB; halos cost 0 % more voxels"}},
    {{"3-D drunet-gray-small", SOLVER, {2, 400, 400}, {0}, 0, 1, 63 * 1024},
     {{1, 50, 1}, {8, 8, 400}, 0, 0, 1, 51765248, 0.4402125, "1 x 50 x 1 windows fit the limit of 63 MiB; halos cost 0 % more voxels"}},
    {{"3-D drunet-gray-small", SOLVER, {100, 100, 100}, {0}, 8, 1, 83 * 1024},
     {{4, 3, 3}, {32, 40, 40}, 8, 8, 1, 77590528, 0.41323274, "4 x 3 x 3 windows fit the limit of 83 MiB; halos cost 150 % more voxels"}},
    {{"3-D random:dncnn", SOLVER, {60, 200, 200}, {0}, EXACT, 1, 200 * 1024},
     {{1, 6, 3}, {60, 47, 74}, 20, 0, 1, 202199040, 0.3048,
      "1 x 6 x 3 windows fit the limit of 200 MiB; halos cost 180 % more voxels"}},
    {{"3-D random:dncnn", SOLVER, {30, 200, 200}, {0}, AUTO, 1, 200 * 1024},
     {{4, 1, 1}, {8, 200, 200}, 0, 0, 1, 171634688, 0.056,
      "4 x 1 x 1 windows fit the limit of 200 MiB; halos cost 0 % more voxels"}},
    /* Tiles as asked; 0: the axis is not cut. */
    {{"3-D drunet-gray-small", SOLVER, {64, 128, 128}, {16, 64, 64}, 8, 1, 4096 * 1024},
     {{4, 2, 2}, {16, 64, 64}, 8, 8, 1, 106196992, 0.23832156, "tile as asked"}},
    {{"3-D drunet-gray-small", SOLVER, {64, 128, 128}, {0, 50, 64}, 8, 1, 4096 * 1024},
     {{1, 3, 2}, {64, 48, 64}, 8, 0, 1, 141955072, 0.1201248, "tile 64 x 50 x 64 asked, 64 x 48 x 64 used: tiles are alike and lie on the network's grid of 8 x 8 x 8"}},
    {{"3-D drunet-gray-small", SOLVER, {64, 128, 128}, {100, 128, 128}, 8, 1, 4096 * 1024},
     {{1, 1, 1}, {64, 128, 128}, 0, 0, 1, 448679936, 0.06092208,
      "tile 100 x 128 x 128 asked, 64 x 128 x 128 used: the volume is no larger"}},
    {{"3-D drunet-gray-small", SOLVER, {64, 128, 128}, {0, WHOLE, WHOLE}, EXACT, 1, 4096 * 1024},
     {{1, 1, 1}, {64, 128, 128}, 0, 0, 1, 448679936, 0.06092208, "the whole volume, as asked"}},
};

/* The least limit, to the byte, and what the message names, in MiB. */
static const struct {
    asked asked;
    uint64_t least, named;
} refusals[] = {
    {{"random:drunet", ROWS, {1, 500, 333}, {0}, AUTO, 1, 1024}, 149193777, 143},
    {{"random:drunet", ROWS, {1, 500, 333}, {0}, EXACT, 0, 1024}, 236418097, 226},
    {{"random:drunet", ROWS, {1, 1200, 907}, {0, WHOLE, WHOLE}, AUTO, 1, 1024}, 981935153, 937},
    {{"random:unet", ROWS, {1, 40, 3000}, {0, 100, 100}, 0, 8, 1024}, 52626481, 51},
    {{"random:dncnn", STAGES, {1, 1200, 907}, {0}, AUTO, 8, 1024}, 4915200, 5},
    {{"drunet-color-small", SOLVER, {30, 300, 300}, {0}, AUTO, 0, 1024}, 74563917, 72},
    {{"3-D drunet-gray-small", SOLVER, {40, 120, 130}, {0}, AUTO, 1, 1024}, 99832141, 96},
    {{"3-D drunet-gray-small", SOLVER, {101, 64, 64}, {0}, EXACT, 1, 1024}, 214454605, 205},
    {{"3-D random:drunet-gray", SOLVER, {9, 700, 300}, {0, 256, 256}, AUTO, 1, 1024}, 1831178573, 1747},
    {{"3-D random:drunet-gray", SOLVER, {9, 700, 300}, {0, WHOLE, WHOLE}, 0, 1, 1024}, 2786926925, 2658},
};
/* clang-format on */

/* Every op takes 50 us and 1 ns a pixel. */
static tess_status set_rates(const tess_engine_model *m, tess_rates *rates)
{
    const int64_t depth = tess_net_grid(m->model.net, TESS_DEPTH),
                  side = tess_net_grid(m->model.net, TESS_HEIGHT);
    tess_net_plan *plan = NULL;
    char name[64];
    TESS_TRY(tess_net_plan_create(m->bound, (tess_plan_shape){.n = 1, .d = depth, .h = side, .w = side},
                                  &plan, &error));
    for (int i = 0; i < tess_net_plan_op_count(plan); i++) {
        tess_op_class(tess_net_plan_op(plan, i), name, sizeof name);
        tess_rates_set(rates, name, 50e-6, 1e-9);
    }
    tess_net_plan_destroy(plan);
    return TESS_OK;
}

static bool is_volume(const char *model)
{
    return strncmp(model, "3-D ", 4) == 0;
}

static bool open_model(const char *name, tess_engine *engine, tess_engine_model **m)
{
    tess_common common;
    tess_common_init(&common);
    common.device = "cpu";
    common.precision = "fp32";
    common.threads = 1;
    return tess_engine_open(engine, &test_counter, &common, &error) == TESS_OK &&
           (is_volume(name) ? tess_engine_volume_of(engine, name + 4, TESS_INFLATE_LEVEL, m, &error)
                            : tess_engine_model_of(engine, name, m, &error)) == TESS_OK &&
           set_rates(*m, engine->rates) == TESS_OK;
}

static tess_cut_request request_of(const asked *a)
{
    const size_t width = (size_t)a->size[TESS_WIDTH];
    tess_cut_request r = {.halo = {a->halo, a->halo, a->halo},
                          .batch = a->batch,
                          .planes = 1,
                          .separate_memory = a->around == STAGES || a->around == LITTLE_HOST,
                          .host_limit = a->around == LITTLE_HOST ? MIB : UINT64_MAX,
                          .limit = a->limit * KIB,
                          .asked_limit = a->limit * KIB};
    memcpy(r.size, a->size, sizeof r.size);
    memcpy(r.tile, a->tile, sizeof r.tile);
    if (a->around == SOLVER) {
        r.halo_times = is_volume(a->model) ? 1 : 2;
        r.others = 3 * MIB + 333;
        return r;
    }
    r.in_row_bytes = r.out_row_bytes = 3 * width;
    r.fixed_io_bytes = 1234;
    r.held_bytes = 54321;
    r.in_pixel_bytes = r.out_pixel_bytes = 3;
    r.row_scratch_bytes = r.separate_memory ? 0 : 96;
    return r;
}

static bool same_axes(const tess_cut_plan *plan, const chosen *c)
{
    bool same = true;
    for (int i = 0; i < TESS_SPATIAL; i++)
        same &= plan->axis[i].tiles == c->tiles[i] && tess_axis_largest_tile(&plan->axis[i]) == c->largest[i];
    return same;
}

static void check_choice(const asked *a, const chosen *c)
{
    tess_engine engine;
    tess_engine_model *m = NULL;
    tess_cut_plan plan = {.batch = 0};
    const tess_cut_request request = request_of(a);
    CHECK_MSG(open_model(a->model, &engine, &m), "%s", error.text);
    CHECK_MSG(tess_cut_choose(m->bound, &m->model, engine.rates, &request, &plan, &error) == TESS_OK,
              "%s: %s", a->model, error.text);
    const uint64_t taken = tess_mem_total(&plan.bytes);
    const tess_axis *axis = plan.axis;
    const bool same = same_axes(&plan, c) && plan.halo == c->halo && plan.halo_depth == c->halo_depth &&
                      plan.batch == c->batch && taken == c->bytes && plan.calibrated &&
                      fabs(plan.seconds - c->seconds) <= 1e-6 * c->seconds &&
                      strcmp(plan.reason, c->reason) == 0;
    CHECK_MSG(same,
              "%s %lld x %lld x %lld, limit %llu KiB:\n"
              "{{%lld, %lld, %lld}, {%lld, %lld, %lld}, %lld, %lld, %lld, %llu, %.8g, \"%s\"}",
              a->model, (long long)a->size[0], (long long)a->size[1], (long long)a->size[2],
              (unsigned long long)a->limit, (long long)axis[0].tiles, (long long)axis[1].tiles,
              (long long)axis[2].tiles, (long long)tess_axis_largest_tile(&axis[0]),
              (long long)tess_axis_largest_tile(&axis[1]), (long long)tess_axis_largest_tile(&axis[2]),
              (long long)plan.halo, (long long)plan.halo_depth, (long long)plan.batch,
              (unsigned long long)taken, plan.seconds, plan.reason);
    CHECK(taken + request.others + tess_cut_reserve(request.separate_memory) <= request.limit);
    tess_engine_close(&engine);
}

/* The number in "10M would do", in MiB; 0 without it. */
static uint64_t named_in(const char *text)
{
    const char *end = strstr(text, "M would do"), *at = end;
    while (at && at > text && isdigit((unsigned char)at[-1]))
        at--;
    return at ? strtoull(at, NULL, 10) : 0;
}

/* A limit of 1 MiB is refused; the number that the message names and the least limit are accepted, and a page less is
 * not. */
static void check_refusal(const asked *a, uint64_t expected_least, uint64_t expected_named)
{
    tess_engine engine;
    tess_engine_model *m = NULL;
    tess_cut_plan plan = {.batch = 0};
    tess_cut_request request = request_of(a);
    CHECK_MSG(open_model(a->model, &engine, &m), "%s", error.text);
    CHECK(tess_cut_choose(m->bound, &m->model, engine.rates, &request, &plan, &error) == TESS_OVER_LIMIT);
    const uint64_t named = named_in(error.text), least = tess_mem_total(&plan.bytes) + request.others +
                                                         tess_cut_reserve(request.separate_memory);
    CHECK_MSG(least == expected_least && named == expected_named,
              "%s %lld x %lld x %lld: least %llu, named %llu: %s", a->model, (long long)a->size[0],
              (long long)a->size[1], (long long)a->size[2], (unsigned long long)least,
              (unsigned long long)named, error.text);
    const struct {
        uint64_t limit;
        tess_status status;
    } limits[] = {{named * MIB, TESS_OK}, {least, TESS_OK}, {least - 4 * KIB, TESS_OVER_LIMIT}};
    for (int i = 0; i < 3; i++) {
        request.limit = limits[i].limit;
        const tess_status status =
            tess_cut_choose(m->bound, &m->model, engine.rates, &request, &plan, &error);
        CHECK_MSG(status == limits[i].status, "%s: a limit of %llu with %llu needed", a->model,
                  (unsigned long long)request.limit, (unsigned long long)least);
    }
    tess_engine_close(&engine);
}

int main(void)
{
    char cache[] = "/tmp/tessera-test-XXXXXX";
    if (!mkdtemp(cache))
        return check_skip("no folder for temporary files");
    setenv("TESSERA_CACHE", cache, 1); /* no rates of earlier runs */
    setenv("TESSERA_ISA", "reference", 1);
    for (size_t i = 0; i < sizeof choices / sizeof choices[0]; i++)
        check_choice(&choices[i].asked, &choices[i].chosen);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++)
        check_refusal(&refusals[i].asked, refusals[i].least, refusals[i].named);
    rmdir(cache);
    return check_end();
}
