/* test_block_exchange.c: an image in a grid of blocks, one thread and device each, that exchange rows, columns and corners inside the
 * network, through the code that ranks use. The blocks together give the bits of the whole image, for the three denoisers and a network
 * with kernels of five columns, in fp32 and bf16, for grids of several shapes, and sizes that are no multiple of the alignment. The same
 * holds on devices with separate memory, whose exchanges pass through pinned memory in the order of streams. */
#define _POSIX_C_SOURCE 200809L
#include "base/checked.h"
#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "late_device.h"
#include "model/model.h"
#include "net/neighbours.h"
#include "plan/ranks/strips.h"
#include "rank_threads.h"
#include "strip_net.h"

static tess_error error;

/* One block, or the whole image. */
typedef struct part {
    tess_device *device;
    tess_bound *bound;
    tess_net_plan *plan;
    tess_block arena, workspace;
    int64_t row, column; /* of its first pixel in the image */
} part;

/* A network with an image, and the grid into which this is divided. */
typedef struct trial {
    const tess_net *net;
    tess_dtype dtype;
    tess_block weights;
    int64_t height, width;
    float *image, *whole, *together;
    int columns;
    bool late; /* devices with separate memory */
    int lost;  /* 1 + the rank whose device fails; 0: none */
    part parts[MOST_RANK_THREADS];
} trial;

static tess_device *open_device(void)
{
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    tess_device *device = NULL;
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    return device;
}

static void open_part(part *p, const tess_net *net, tess_dtype dtype, tess_plan_shape shape, bool late)
{
    p->device = open_device();
    CHECK(tess_bound_create(net, p->device, dtype, &p->bound, &error) == TESS_OK);
    if (late) /* weights lie farther apart on a card, and all parts have the same */
        late_device(p->device);
    CHECK_MSG(tess_net_plan_create(p->bound, shape, &p->plan, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_net_plan_prepare(p->plan, &error) == TESS_OK);
    CHECK(tess_block_alloc(&test_counter, &p->arena, TESS_MEM_ACTIVATIONS, tess_net_plan_arena_bytes(p->plan),
                           &error) == TESS_OK);
    CHECK(tess_block_alloc(&test_counter, &p->workspace, TESS_MEM_WORKSPACE,
                           tess_net_plan_workspace_bytes(p->plan), &error) == TESS_OK);
}

static void close_part(part *p)
{
    tess_net_plan_destroy(p->plan);
    tess_bound_destroy(p->bound);
    tess_block_free(&p->arena);
    tess_block_free(&p->workspace);
    tess_registry_close(p->device);
}

/* Copies the block's pixels of an image into the network's input, or its output into one. */
static void move_pixels(const trial *t, const part *p, float *image, bool in)
{
    size_t offset;
    const tess_tensor v = in ? tess_net_plan_input(p->plan, &offset) : tess_net_plan_output(p->plan, &offset);
    float *data = (float *)((char *)p->arena.data + offset);
    for (int64_t y = 0; y < v.h; y++) {
        float *here = data + y * v.stride_h, *there = image + ((p->row + y) * t->width + p->column) * v.c;
        memcpy(in ? here : there, in ? there : here, (size_t)(v.w * v.c) * sizeof *here);
    }
}

/* Queues all work of a run on a stream, and waits for it at its end. */
static void run_late(const part *p, tess_net_run run, tess_neighbours *neighbours)
{
    const tess_device_streams *streams = p->device->streams;
    tess_error mine;
    CHECK(streams->create(p->device, &run.stream, &mine) == TESS_OK);
    const size_t bytes = tess_net_plan_exchange_bytes(p->plan);
    CHECK(bytes > 0 && tess_neighbours_relay(neighbours, p->device, bytes, &mine) == TESS_OK);
    memset(neighbours->relay.pinned.data, 0xff, bytes);
    tess_net_plan_execute(p->plan, &run);
    CHECK(streams->sync(p->device, run.stream, &mine) == TESS_OK);
    streams->destroy(p->device, run.stream);
}

static void run_block(rank_thread *thread)
{
    trial *t = thread->user;
    const part *p = &t->parts[thread->dist.rank];
    tess_neighbours neighbours;
    tess_error mine;
    CHECK(tess_neighbours_open(&neighbours, &thread->dist, t->columns, &mine) == TESS_OK);
    const tess_net_run run = {.arena = p->arena.data,
                              .workspace = p->workspace.data,
                              .weights = t->weights.data,
                              .exchanger = &tess_neighbours_exchanger,
                              .exchange_user = &neighbours};
    late_is_lost = t->lost == 1 + thread->dist.rank;
    if (t->late)
        run_late(p, run, &neighbours);
    else
        tess_net_plan_execute(p->plan, &run);
    CHECK_MSG(neighbours.status == (late_is_lost ? TESS_DEVICE_LOST : TESS_OK), "%s", neighbours.error.text);
    tess_neighbours_close(&neighbours);
}

static int parts_of_largest(const tess_net_plan *plan)
{
    int most = 0;
    for (int i = 0, same = 0, layer = -1; i < tess_net_plan_step_count(plan); i++) {
        const tess_plan_step step = tess_net_plan_step(plan, i);
        if (step.kind != TESS_STEP_OP)
            continue;
        same = step.layer == layer ? same + 1 : 1;
        layer = step.layer;
        most = same > most ? same : most;
    }
    return most;
}

static void test_grid(trial *t, int down, int across, int *most_parts)
{
    const int64_t grid = tess_net_grid(t->net, TESS_HEIGHT);
    part any = {0};
    open_part(&any, t->net, t->dtype, (tess_plan_shape){.n = 1, .h = 8, .w = 8}, false);
    const tess_strips rows = tess_strips_divide(any.bound, grid, t->height, down),
                      columns = tess_strips_divide_columns(any.bound, grid, t->width, across);
    close_part(&any);
    CHECK_MSG(rows.count == down && columns.count == across, "%d x %d: %d x %d", down, across,
              (int)rows.count, (int)columns.count);
    t->columns = across;
    for (int r = 0; r < down * across; r++) {
        const int y = r / across, x = r % across;
        part *p = &t->parts[r];
        *p = (part){.row = tess_strips_row(&rows, y), .column = tess_strips_row(&columns, x)};
        open_part(p, t->net, t->dtype,
                  (tess_plan_shape){.n = 1,
                                    .h = tess_strips_rows(&rows, y),
                                    .w = tess_strips_rows(&columns, x),
                                    .above = y > 0,
                                    .below = y + 1 < down,
                                    .left = x > 0,
                                    .right = x + 1 < across},
                  t->late);
        CHECK(tess_net_plan_exchange_count(p->plan) > 0);
        const int parts = parts_of_largest(p->plan);
        *most_parts = parts > *most_parts ? parts : *most_parts;
        memset(p->arena.data, 0xff,
               tess_net_plan_arena_bytes(p->plan)); /* margins are NaN until they are filled */
        move_pixels(t, p, t->image, true);
    }
    rank_threads_run(down * across, NULL, run_block, t);
    for (int r = 0; r < down * across; r++) {
        move_pixels(t, &t->parts[r], t->together, false);
        close_part(&t->parts[r]);
    }
    const size_t bytes = (size_t)(t->height * t->width * STRIP_COLOURS) * sizeof *t->whole;
    CHECK_MSG(t->lost || memcmp(t->together, t->whole, bytes) == 0, "%d x %d blocks of %lld x %lld differ%s",
              down, across, (long long)t->height, (long long)t->width,
              t->late ? " with separate memory" : "");
}

/* The image must have seven steps of the alignment in width, and three in height. Returns the most ops of one layer. */
static int test_image(const tess_net *net, tess_dtype dtype, const tess_block *weights, int64_t height,
                      int64_t width)
{
    static const int grids[][2] = {{1, 2}, {2, 1}, {2, 2}, {2, 3}, {3, 2}, {3, 3}, {1, 7}};
    trial t = {.net = net, .dtype = dtype, .weights = *weights, .height = height, .width = width};
    part one = {0};
    open_part(&one, net, dtype, (tess_plan_shape){.n = 1, .h = height, .w = width}, false);
    size_t offset;
    const int64_t values = height * width * tess_net_plan_input(one.plan, &offset).c,
                  results = height * width * STRIP_COLOURS;
    t.image = calloc((size_t)values, sizeof *t.image);
    t.whole = calloc((size_t)results, sizeof *t.whole);
    t.together = calloc((size_t)results, sizeof *t.together);
    tess_rng_uniform((tess_rng_key){4, 5, 6}, 0, values, t.image);
    move_pixels(&t, &one, t.image, true);
    tess_net_plan_run(one.plan, one.arena.data, one.workspace.data, weights->data, NULL);
    move_pixels(&t, &one, t.whole, false);
    close_part(&one);
    int most = 0;
    for (size_t i = 0; i < 2 * sizeof grids / sizeof grids[0]; i++) {
        t.late = i % 2;
        memset(t.together, 0xff, (size_t)results * sizeof *t.together);
        test_grid(&t, grids[i / 2][0], grids[i / 2][1], &most);
    }
    t.lost = 2; /* its neighbours get something, and do not wait for ever */
    test_grid(&t, 2, 2, &most);
    free(t.image), free(t.whole), free(t.together);
    return most;
}

/* Returns no weights if this processor has no such kernels. */
static tess_block load(const tess_net *net, tess_dtype dtype, tess_weights *file)
{
    tess_device *device = open_device();
    tess_bound *bound = NULL;
    tess_block weights = {0};
    const bool known = tess_bound_create(net, device, dtype, &bound, &error) == TESS_OK;
    CHECK_MSG(known || dtype != TESS_F32, "%s", error.text);
    if (!known) {
        tess_registry_close(device);
        return weights;
    }
    const size_t bytes = tess_bound_weight_bytes(bound);
    CHECK(tess_block_alloc(&test_counter, &weights, TESS_MEM_WEIGHTS, bytes, &error) == TESS_OK);
    if (file)
        CHECK_MSG(tess_bound_load(bound, file, weights.data, &error) == TESS_OK, "%s", error.text);
    else
        tess_rng_normal((tess_rng_key){1, 2, 3}, 0, (int64_t)(bytes / sizeof(float)), weights.data);
    tess_bound_destroy(bound);
    tess_registry_close(device);
    return weights;
}

static void test_model(const tess_model_shape *shape, int64_t height, int64_t width)
{
    tess_weights *file = NULL;
    tess_model_net model;
    CHECK_MSG(tess_model_new(shape, &file, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_model_recognise(file, &model, &error) == TESS_OK, "%s", error.text);
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
    test_kernels_of_five();
    test_model(&dncnn, 37, 61);
    test_model(&dncnn, 90, 141);
    test_model(&unet, 88, 216);
    test_model(&drunet, 88, 216);
    test_model(&drunet, 264, 232);
    return check_end();
}
