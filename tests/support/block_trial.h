/* block_trial.h: an image in a grid of blocks, one thread and device each, that exchange rows, columns and corners inside the network, through
 * the code that ranks use. The blocks together give the bits of the whole image. They exchange in host memory; on devices with separate
 * memory, through pinned memory or by NCCL, in the order of streams. */
#ifndef TESS_TESTS_BLOCK_TRIAL_H
#define TESS_TESTS_BLOCK_TRIAL_H

#include "base/checked.h"
#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "late_device.h"
#include "model/model.h"
#include "nccl_hub.h"
#include "net/neighbours.h"
#include "plan/ranks/strips.h"
#include "rank_threads.h"
#include "strip_net.h"

static tess_error trial_error;

/* One block, or the whole image. */
typedef struct part {
    tess_device *device;
    tess_bound *bound;
    tess_net_plan *plan;
    tess_block arena, workspace;
    char *mirror;        /* of the arena, on the host; it is the arena itself if that is there */
    int64_t row, column; /* of its first pixel in the image */
} part;

typedef enum trial_way { TRIAL_HOST, TRIAL_PINNED, TRIAL_NCCL } trial_way;

/* A network with an image, and the grid into which this is divided. */
typedef struct trial {
    const char *kind; /* of device */
    const tess_net *net;
    tess_dtype dtype;
    tess_block weights;
    int64_t height, width;
    float *image, *whole, *together;
    int columns;
    trial_way way;
    int lost; /* 1 + the rank whose device fails; 0: none */
    part parts[MOST_RANK_THREADS];
} trial;

static inline tess_device *trial_device(const char *kind)
{
    const tess_device_options options = {.threads = 1, .memory = &test_counter};
    tess_device *device = NULL;
    CHECK_MSG(tess_registry_open(kind, &options, &device, &trial_error) == TESS_OK, "%s", trial_error.text);
    return device;
}

static inline void open_part(part *p, const trial *t, tess_plan_shape shape, bool whole)
{
    tess_device *device = p->device = trial_device(t->kind);
    CHECK(tess_bound_create(t->net, device, t->dtype, &p->bound, &trial_error) == TESS_OK);
    /* weights lie farther apart on a card, and all parts have the same */
    if (device->host_memory && !whole && t->way != TRIAL_HOST)
        late_device(device);
    CHECK_MSG(tess_net_plan_create(p->bound, shape, &p->plan, &trial_error) == TESS_OK, "%s",
              trial_error.text);
    CHECK(tess_net_plan_prepare(p->plan, &trial_error) == TESS_OK);
    const size_t bytes = tess_net_plan_arena_bytes(p->plan);
    CHECK(device->memory->alloc(device, &p->arena, TESS_MEM_ACTIVATIONS, bytes, &trial_error) == TESS_OK);
    CHECK(device->memory->alloc(device, &p->workspace, TESS_MEM_WORKSPACE,
                                tess_net_plan_workspace_bytes(p->plan), &trial_error) == TESS_OK);
    p->mirror = strcmp(t->kind, "cpu") == 0 ? p->arena.data : malloc(bytes);
    memset(p->mirror, 0xff, bytes); /* margins are NaN until they are filled */
}

static inline void close_part(part *p)
{
    if (p->mirror != p->arena.data)
        free(p->mirror);
    tess_net_plan_destroy(p->plan);
    tess_bound_destroy(p->bound);
    p->device->memory->free(p->device, &p->arena);
    p->device->memory->free(p->device, &p->workspace);
    tess_registry_close(p->device);
}

/* Copies the whole arena to the card, or back. */
static inline void mirror(const part *p, bool in)
{
    if (p->mirror == p->arena.data)
        return;
    p->device->memory->copy(p->device, in ? p->arena.data : p->mirror, in ? p->mirror : p->arena.data,
                            tess_net_plan_arena_bytes(p->plan), NULL);
    CHECK_MSG(p->device->streams->sync(p->device, NULL, &trial_error) == TESS_OK, "%s", trial_error.text);
}

/* Copies the block's pixels of an image into the network's input, or its output into one. */
static inline void move_pixels(const trial *t, const part *p, float *image, bool in)
{
    size_t offset;
    const tess_tensor v = in ? tess_net_plan_input(p->plan, &offset) : tess_net_plan_output(p->plan, &offset);
    float *data = (float *)(p->mirror + offset);
    if (!in)
        mirror(p, false);
    for (int64_t y = 0; y < v.h; y++) {
        float *here = data + y * v.stride_h, *there = image + ((p->row + y) * t->width + p->column) * v.c;
        memcpy(in ? here : there, in ? there : here, (size_t)(v.w * v.c) * sizeof *here);
    }
    if (in)
        mirror(p, true);
}

/* Queues all work of a run on a stream, and waits for it at its end. */
static inline void run_queued(const trial *t, const part *p, tess_net_run run, rank_thread *thread,
                              tess_neighbours *neighbours)
{
    const tess_device_streams *streams = p->device->streams;
    tess_error mine;
    tess_nccl *nccl = NULL;
    const size_t bytes = tess_net_plan_exchange_bytes(p->plan);
    CHECK(streams->create(p->device, &run.stream, &mine) == TESS_OK);
    CHECK(bytes > 0);
    if (t->way == TRIAL_NCCL) {
        CHECK_MSG(tess_nccl_open(&thread->dist, p->device, &hub_api, &nccl, &mine) == TESS_OK, "%s",
                  mine.text);
        neighbours->nccl = nccl;
    } else {
        CHECK(tess_neighbours_relay(neighbours, p->device, bytes, &mine) == TESS_OK);
        memset(neighbours->relay.pinned.data, 0xff, bytes);
    }
    tess_net_plan_execute(p->plan, &run);
    CHECK_MSG(streams->sync(p->device, run.stream, &mine) == TESS_OK, "%s", mine.text);
    if (nccl) /* streams of late devices point to each other */
        pthread_barrier_wait(&rank_threads.meet);
    streams->destroy(p->device, run.stream);
    tess_nccl_close(nccl);
}

static inline void run_block(rank_thread *thread)
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
    if (t->way == TRIAL_HOST)
        tess_net_plan_execute(p->plan, &run);
    else
        run_queued(t, p, run, thread, &neighbours);
    CHECK_MSG(neighbours.status == (late_is_lost ? TESS_DEVICE_LOST : TESS_OK), "%s", neighbours.error.text);
    tess_neighbours_close(&neighbours);
}

static inline int parts_of_largest(const tess_net_plan *plan)
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

/* Returns the most ops of one layer. */
static inline int trial_grid(trial *t, int down, int across)
{
    static const char *const ways[] = {"", " through pinned memory", " by NCCL"};
    const int64_t grid = tess_net_grid(t->net, TESS_HEIGHT);
    int most = 0;
    part any = {0};
    open_part(&any, t, (tess_plan_shape){.n = 1, .h = 8, .w = 8}, true);
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
        open_part(p, t,
                  (tess_plan_shape){.n = 1,
                                    .h = tess_strips_rows(&rows, y),
                                    .w = tess_strips_rows(&columns, x),
                                    .above = y > 0,
                                    .below = y + 1 < down,
                                    .left = x > 0,
                                    .right = x + 1 < across},
                  false);
        CHECK(tess_net_plan_exchange_count(p->plan) > 0);
        const int parts = parts_of_largest(p->plan);
        most = parts > most ? parts : most;
        move_pixels(t, p, t->image, true);
    }
    rank_threads_run(down * across, NULL, run_block, t);
    for (int r = 0; r < down * across; r++) {
        move_pixels(t, &t->parts[r], t->together, false);
        close_part(&t->parts[r]);
    }
    const size_t bytes = (size_t)(t->height * t->width * STRIP_COLOURS) * sizeof *t->whole;
    CHECK_MSG(t->lost || memcmp(t->together, t->whole, bytes) == 0, "%d x %d blocks of %lld x %lld differ%s",
              down, across, (long long)t->height, (long long)t->width, ways[t->way]);
    return most;
}

/* The image, and what the network makes of the whole. The caller has set the rest, and frees them by trial_end. */
static inline void trial_begin(trial *t)
{
    part one = {0};
    size_t offset;
    open_part(&one, t, (tess_plan_shape){.n = 1, .h = t->height, .w = t->width}, true);
    const int64_t values = t->height * t->width * tess_net_plan_input(one.plan, &offset).c,
                  results = t->height * t->width * STRIP_COLOURS;
    t->image = calloc((size_t)values, sizeof *t->image);
    t->whole = calloc((size_t)results, sizeof *t->whole);
    t->together = calloc((size_t)results, sizeof *t->together);
    tess_rng_uniform((tess_rng_key){4, 5, 6}, 0, values, t->image);
    move_pixels(t, &one, t->image, true);
    tess_net_plan_run(one.plan, one.arena.data, one.workspace.data, t->weights.data, NULL);
    move_pixels(t, &one, t->whole, false);
    close_part(&one);
}

static inline void trial_end(trial *t)
{
    free(t->image), free(t->whole), free(t->together);
}

/* Weights of a network for a device; none if this has no such kernels. */
static inline tess_block trial_load(tess_device *device, const tess_net *net, tess_dtype dtype,
                                    tess_weights *file)
{
    tess_bound *bound = NULL;
    tess_block weights = {0};
    const bool known = tess_bound_create(net, device, dtype, &bound, &trial_error) == TESS_OK;
    CHECK_MSG(known || dtype != TESS_F32, "%s", trial_error.text);
    if (!known)
        return weights;
    const size_t bytes = tess_bound_weight_bytes(bound);
    CHECK(device->memory->alloc(device, &weights, TESS_MEM_WEIGHTS, bytes, &trial_error) == TESS_OK);
    if (file)
        CHECK_MSG(tess_bound_load(bound, file, weights.data, &trial_error) == TESS_OK, "%s",
                  trial_error.text);
    else
        tess_rng_normal((tess_rng_key){1, 2, 3}, 0, (int64_t)(bytes / sizeof(float)), weights.data);
    tess_bound_destroy(bound);
    return weights;
}

#endif
