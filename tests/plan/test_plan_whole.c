/* What the planner does with a network that looks at the whole image: with exact halos it is never cut, neither by the planner's
 * choice nor on request. */
#define _XOPEN_SOURCE 700
#include <unistd.h>

#include "block_net.h"
#include "counter.h"
#include "plan/cut.h"
#include "tessera.h"

enum { SIDE = 200 };
static tess_error error;

static tess_cut_request request_of(int64_t tile, int64_t halo, uint64_t limit)
{
    return (tess_cut_request){.size = {1, SIDE, SIDE},
                              .tile = {0, tile, tile},
                              .halo = {halo, halo, halo},
                              .batch = 1,
                              .planes = 1,
                              .in_row_bytes = 3 * SIDE,
                              .out_row_bytes = 3 * SIDE,
                              .host_limit = UINT64_MAX,
                              .limit = limit,
                              .asked_limit = limit};
}

static void check_cuts(tess_device *device, const tess_model_net *model)
{
    const uint64_t much = (uint64_t)1 << 32, little = (uint64_t)9 << 20;
    tess_bound *bound = NULL;
    tess_rates *rates = NULL;
    tess_cut_plan plan;
    CHECK_MSG(tess_bound_create(model->net, device, TESS_F32, &bound, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_rates_open(device, &rates, &error) == TESS_OK, "%s", error.text);
    tess_cut_request request = request_of(0, TESS_HALO_EXACT, much);
    CHECK(tess_cut_choose(bound, model, rates, &request, &plan, &error) == TESS_OK);
    CHECK(plan.rows.tiles == 1 && plan.cols.tiles == 1 && plan.halo == 0);
    const uint64_t taken = tess_mem_total(&plan.bytes) + tess_cut_reserve(false);
    /* Less than the whole takes is refused, and the least that is named is that of the whole. */
    request = request_of(0, TESS_HALO_EXACT, little);
    CHECK(taken > little);
    CHECK(tess_cut_choose(bound, model, rates, &request, &plan, &error) == TESS_OVER_LIMIT);
    CHECK(plan.rows.tiles == 1 && plan.cols.tiles == 1);
    /* A tile that is asked for is refused, unless it holds the image or the halo is a number. */
    request = request_of(64, TESS_HALO_EXACT, much);
    CHECK(tess_cut_choose(bound, model, rates, &request, &plan, &error) == TESS_BAD_OPTION);
    CHECK_MSG(strstr(error.text, "no tile is exact"), "%s", error.text);
    request = request_of(SIDE + 8, TESS_HALO_EXACT, much);
    CHECK(tess_cut_choose(bound, model, rates, &request, &plan, &error) == TESS_OK && plan.rows.tiles == 1);
    request = request_of(TESS_TILE_WHOLE, TESS_HALO_EXACT, much);
    CHECK(tess_cut_choose(bound, model, rates, &request, &plan, &error) == TESS_OK && plan.rows.tiles == 1);
    request = request_of(64, 16, much);
    CHECK(tess_cut_choose(bound, model, rates, &request, &plan, &error) == TESS_OK && plan.rows.tiles > 1);
    CHECK(plan.halo == 16);
    tess_rates_destroy(rates);
    tess_bound_destroy(bound);
}

/* Attention's operations grow with the square of the pixels: measuring it must end, and scales and shifts stay vectors. */
static void check_calibration(tess_device *device, const tess_model_net *model)
{
    tess_bound *bound = NULL;
    tess_rates *rates = NULL;
    tess_net_plan *plan = NULL;
    const tess_plan_shape shape = {.n = 1, .h = 16, .w = 16};
    const tess_rates_budget budget = {.seconds = 60, .bytes = (size_t)64 << 20};
    CHECK(tess_bound_create(model->net, device, TESS_F32, &bound, &error) == TESS_OK);
    CHECK(tess_rates_open(device, &rates, &error) == TESS_OK);
    CHECK(tess_net_plan_create(bound, shape, &plan, &error) == TESS_OK);
    CHECK_MSG(tess_rates_measure(rates, plan, budget, &error) == TESS_OK, "%s", error.text);
    bool measured = true;
    CHECK(tess_rates_plan_seconds(rates, plan, &measured) > 0 && measured);
    unlink(tess_rates_path(rates));
    tess_net_plan_destroy(plan);
    tess_rates_destroy(rates);
    tess_bound_destroy(bound);
}

int main(void)
{
    char cache[] = "/tmp/tessera-test-XXXXXX";
    if (!mkdtemp(cache))
        return check_skip("no folder for temporary files");
    setenv("TESSERA_CACHE", cache, 1); /* no rates of earlier runs, and none for later ones */
    const tess_device_options options = {.memory = &test_counter, .threads = 1};
    tess_device *device = NULL;
    tess_model_net model = {.architecture = "block", .net = block_net(), .channels = 3, .halo = 16};
    CHECK(tess_registry_open("cpu", &options, &device, &error) == TESS_OK);
    check_cuts(device, &model);
    check_calibration(device, &model);
    tess_registry_close(device);
    tess_net_destroy(model.net);
    rmdir(cache);
    return check_end();
}
