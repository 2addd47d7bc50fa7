/* test_nccl_cuda.c: NCCL on one card. The library is the one that TESSERA_NCCL names, else libnccl.so.2; skips without one. NCCL takes one rank
 * per card, so this process is the only one: it exchanges with itself, and carries what the blocks of a divided image exchange, and gradients (nccl_hub.h).
 * Kernels that sum in one order whatever the size give the bits of the whole image. */
#define _POSIX_C_SOURCE 200809L
#include "block_trial.h"
#include "card_sum_trial.h"
#include "gpu.h"
#include "nccl_checks.h"

static void test_model(tess_device *device, const tess_model_shape *shape, tess_dtype dtype)
{
    static const int grids[][2] = {{2, 1}, {4, 1}, {1, 2}, {2, 2}, {3, 3}};
    tess_weights *file = NULL;
    tess_model_net model;
    CHECK_MSG(tess_model_new(shape, &file, &trial_error) == TESS_OK, "%s", trial_error.text);
    CHECK_MSG(tess_model_recognise(file, &model, &trial_error) == TESS_OK, "%s", trial_error.text);
    trial t = {.kind = "cuda", .net = model.net, .dtype = dtype, .height = 264, .width = 232};
    t.weights = trial_load(device, model.net, dtype, file);
    CHECK(device->streams->sync(device, NULL, &trial_error) == TESS_OK);
    trial_begin(&t);
    for (size_t i = 0; i < 2 * sizeof grids / sizeof grids[0]; i++) {
        t.way = i % 2 ? TRIAL_NCCL : TRIAL_PINNED;
        memset(t.together, 0xff, (size_t)(t.height * t.width * STRIP_COLOURS) * sizeof *t.together);
        (void)trial_grid(&t, grids[i / 2][0], grids[i / 2][1]);
    }
    trial_end(&t);
    device->memory->free(device, &t.weights);
    tess_model_clear(&model);
    tess_weights_close(file);
}

static void test_threads(tess_device *device, const tess_nccl_api *api)
{
    static const tess_model_shape dncnn = {.architecture = "dncnn",
                                           .channels = 3,
                                           .width_count = 1,
                                           .widths = {16},
                                           .depth = 5},
                                  drunet = {.architecture = "drunet",
                                            .channels = 3,
                                            .width_count = 4,
                                            .widths = {16, 16, 32, 32},
                                            .blocks = 1};
    hub_open(api, device);
    test_model(device, &dncnn, TESS_F32);
    test_model(device, &drunet, TESS_F32);
    test_card_sums("cuda");
    CHECK(hub.sent > 0);
    printf("%lld messages between threads\n", (long long)hub.sent);
    hub_close();
}

int main(void)
{
    int status;
    tess_error error = {{0}};
    tess_nccl_found found;
    tess_dist alone;
    const char *named = getenv("TESSERA_NCCL");
    setenv("TESSERA_CUDA_ENGINE", "generic", 1);
    tess_device *device = gpu_open(&status);
    if (!device)
        return status;
    tess_dist_init_solo(&alone);
    const tess_status looked = tess_nccl_find(&alone, device, false, &found, &error);
    if (looked != TESS_OK || !found.usable) {
        const char *why = looked != TESS_OK ? error.text : found.words;
        tess_registry_close(device);
        if (!named || !*named || strcmp(named, "0") == 0)
            return check_skip(why);
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    printf("%s\n", found.words);
    check_nccl(device, &found.api);
    test_threads(device, &found.api);
    tess_registry_close(device);
    return check_end();
}
