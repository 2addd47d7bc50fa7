/* test_block_exchange.c: images in grids of blocks that exchange inside the network (block_trial.h), for the three denoisers and a network
 * with kernels of five columns, in fp32 and bf16, for grids of several shapes, and sizes that are no multiple of the alignment. In host
 * memory, and on devices with separate memory whose work is done as late as possible: through pinned memory, and by NCCL. */
#define _POSIX_C_SOURCE 200809L
#include "block_trial.h"
#include "late_nccl.h"

/* The image must have seven steps of the alignment in width, and three in height. Returns the most ops of one layer. */
static int test_image(const tess_net *net, tess_dtype dtype, const tess_block *weights, int64_t height,
                      int64_t width)
{
    static const int grids[][2] = {{1, 2}, {2, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 3}, {1, 7}};
    trial t = {
        .kind = "cpu", .net = net, .dtype = dtype, .weights = *weights, .height = height, .width = width};
    int most = 0;
    trial_begin(&t);
    for (size_t i = 0; i < 3 * sizeof grids / sizeof grids[0]; i++) {
        t.way = (trial_way)(i % 3);
        if (t.way == TRIAL_NCCL && grids[i / 3][0] + grids[i / 3][1] == 5)
            continue; /* that takes long, and tells no more than the others */
        memset(t.together, 0xff, (size_t)(height * width * STRIP_COLOURS) * sizeof *t.together);
        most = tess_max_i64(most, trial_grid(&t, grids[i / 3][0], grids[i / 3][1]));
    }
    t.way = TRIAL_PINNED;
    t.lost = 2; /* its neighbours get something, and do not wait for ever */
    (void)trial_grid(&t, 2, 2);
    trial_end(&t);
    return most;
}

static tess_block load(const tess_net *net, tess_dtype dtype, tess_weights *file)
{
    tess_device *device = trial_device("cpu");
    tess_block weights = trial_load(device, net, dtype, file);
    tess_registry_close(device);
    return weights;
}

static void test_model(const tess_model_shape *shape, int64_t height, int64_t width)
{
    tess_weights *file = NULL;
    tess_model_net model;
    CHECK_MSG(tess_model_new(shape, &file, &trial_error) == TESS_OK, "%s", trial_error.text);
    CHECK_MSG(tess_model_recognise(file, &model, &trial_error) == TESS_OK, "%s", trial_error.text);
    static const tess_dtype dtypes[] = {TESS_F32, TESS_BF16};
    for (int i = 0; i < 2; i++) {
        tess_block weights = load(model.net, dtypes[i], file);
        if (weights.data)
            (void)test_image(model.net, dtypes[i], &weights, height, width);
        tess_block_free(&weights);
    }
    tess_model_clear(&model);
    tess_weights_close(file);
}

/* Parts of a block that both wait for nothing and for all sides: the inner part and four edges. */
static void test_kernels_of_five(void)
{
    tess_net *net = make_strip_net();
    tess_block weights = load(net, TESS_F32, NULL);
    (void)test_image(net, TESS_F32, &weights, 3 * 16 + 2, 7 * 16 + 6);
    const int parts = test_image(net, TESS_F32, &weights, 200, 250);
    CHECK_MSG(parts == 5, "the middle one of 3 x 3 blocks has %d parts", parts);
    tess_block_free(&weights);
    tess_net_destroy(net);
}

int main(void)
{
    static const tess_model_shape dncnn = {.architecture = "dncnn",
                                           .channels = 3,
                                           .width_count = 1,
                                           .widths = {16},
                                           .depth = 5},
                                  unet = {.architecture = "unet",
                                          .channels = 3,
                                          .width_count = 4,
                                          .widths = {16, 16, 32, 32},
                                          .batch_norm = true},
                                  drunet = {.architecture = "drunet",
                                            .channels = 3,
                                            .width_count = 4,
                                            .widths = {16, 16, 32, 32},
                                            .blocks = 1};
    tess_device *device = trial_device("cpu");
    late_device(device);
    hub_open(&late_nccl, device);
    test_kernels_of_five();
    test_model(&dncnn, 37, 61);
    test_model(&dncnn, 90, 141);
    test_model(&unet, 88, 216);
    test_model(&drunet, 88, 216);
    test_model(&drunet, 264, 232);
    CHECK(hub.sent > 0);
    hub_close();
    tess_registry_close(device);
    return check_end();
}
