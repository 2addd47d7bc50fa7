/* Times the group norms of the diffusion UNet at windows of 128 pixels on the card, by each row that takes them: a JSON line
 * for each with microseconds and gigabytes a second, input and output counted once, and for each batch and row one with
 * the milliseconds of all group norms of a network step.
 *
 *   norm_rates [fp32|fp16|bf16] [BATCH...]        bf16, batches of 1, 8 and 64 by default
 *
 * Runs follow each other in a graph, on four sets of buffers in turn. */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>

#include "device/kernel.h"
#include "op/row.h"
#include "rates.h"

enum { RUNS = 20, ROUNDS = 7, FILL = 1 << 20, ROWS = 2, SETS = 4 };
static const double LARGE = 250e6; /* bytes of one set of buffers that are several times a card's cache */
static const char *const rows[ROWS] = {"group norm", "norm clusters"};
static tess_memory counter;
static tess_error error;
static tess_dtype dtype = TESS_BF16;
static float values[FILL];

/* With scale and shift, and without; layers of the network. */
static const struct {
    int64_t side, channels;
    int modulated, plain;
} shapes[] = {{128, 32, 5, 4}, {128, 64, 1, 2}, {128, 96, 0, 1}, {64, 32, 1, 1},  {64, 64, 5, 3},
              {64, 96, 0, 1},  {64, 128, 1, 1}, {64, 192, 0, 1}, {32, 64, 1, 1},  {32, 128, 5, 8},
              {32, 192, 0, 1}, {32, 256, 1, 1}, {32, 384, 0, 1}, {16, 128, 1, 1}, {16, 256, 6, 8},
              {16, 384, 0, 1}, {16, 512, 0, 2}, {8, 256, 8, 6},  {8, 512, 0, 3},  {256, 32, 0, 0},
              {256, 96, 0, 0}, {512, 32, 0, 0}};
enum { COUNT = sizeof shapes / sizeof shapes[0], GROUPS = 32 };

static void fill_values(void)
{
    uint32_t state = 1;
    for (int i = 0; i < FILL; i++) {
        state = state * 1664525u + 1013904223u;
        const float value = (float)(state >> 8) / (float)(1 << 23) - 1;
        if (dtype == TESS_F32)
            values[i] = value;
        else
            ((uint16_t *)values)[i] =
                dtype == TESS_F16 ? tess_float_to_half(value) : tess_float_to_bf16(value);
    }
}

static void *take(tess_device *device, size_t bytes, tess_block *block)
{
    const size_t most = FILL * tess_dtype_size(dtype);
    need(device->memory->alloc(device, block, TESS_MEM_WORKSPACE, bytes ? bytes : 1, &error), &error);
    for (size_t at = 0; at < bytes; at += most)
        device->memory->copy(device, (char *)block->data + at, values, bytes - at < most ? bytes - at : most,
                             NULL);
    need(device->streams->sync(device, NULL, &error), &error);
    return block->data;
}

static void *take_tensor(tess_device *device, const tess_tensor *t, tess_block *block)
{
    size_t bytes = 0;
    if (!tess_tensor_bytes(t, &bytes))
        exit(1);
    return take(device, bytes, block);
}

/* Median microseconds of a run in a graph of RUNS runs: a launch from the host takes longer than a small op. */
static double time_runs(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *at,
                        int sets)
{
    tess_event *from = NULL, *to = NULL;
    tess_stream *stream = NULL;
    tess_graph *graph = NULL;
    double us[ROUNDS];
    need(device->streams->event_create(device, &from, &error), &error);
    need(device->streams->event_create(device, &to, &error), &error);
    need(device->streams->create(device, &stream, &error), &error);
    need(device->graphs->begin(device, stream, &error), &error);
    for (int i = 0; i < RUNS; i++)
        device->ops->run(device, prepared, &at[i % sets], stream);
    need(device->graphs->end(device, stream, &graph, &error), &error);
    device->graphs->launch(device, graph, stream);
    for (int r = 0; r < ROUNDS; r++) {
        device->streams->record(device, from, stream);
        device->graphs->launch(device, graph, stream);
        device->streams->record(device, to, stream);
        need(device->streams->sync(device, stream, &error), &error);
        us[r] = 1e6 * device->streams->elapsed(device, from, to) / RUNS;
    }
    device->graphs->release(device, graph);
    device->streams->destroy(device, stream);
    device->streams->event_destroy(device, from);
    device->streams->event_destroy(device, to);
    qsort(us, ROUNDS, sizeof *us, by_value);
    return us[ROUNDS / 2];
}

static double time_shape(tess_device *device, int shape, int64_t batch, bool modulated)
{
    const int64_t side = shapes[shape].side, channels = shapes[shape].channels;
    tess_op op = {.kind = TESS_OP_GROUP_NORM,
                  .inputs = modulated ? 2 : 1,
                  .outputs = 1,
                  .kernel = {1, 1, 1},
                  .stride = {1, 1, 1},
                  .activation = TESS_SILU,
                  .group_norm = {GROUPS, 1e-5, false}};
    op.in[0] = op.out[0] = tess_tensor_2d(dtype, batch, side, side, channels);
    op.in[1] = tess_tensor_2d(TESS_F32, 1, 1, 1, 2 * channels);
    tess_prepared *prepared = NULL;
    tess_op_needs needs;
    tess_op_buffers at[SETS];
    tess_block in[SETS], out[SETS], more, weights, workspace;
    need(device->ops->query(device, &op, &needs, &error), &error);
    need(device->ops->prepare(device, &op, &prepared, &error), &error);
    take_tensor(device, &op.in[1], &more);
    take(device, needs.weights, &weights);
    take(device, needs.workspace, &workspace);
    const double bytes = 2.0 * (double)(batch * side * side * channels) * (double)tess_dtype_size(dtype);
    const int sets = bytes > LARGE ? 1 : SETS;
    for (int i = 0; i < sets; i++)
        at[i] = (tess_op_buffers){.in = {take_tensor(device, &op.in[0], &in[i]), more.data},
                                  .out = {take_tensor(device, &op.out[0], &out[i])},
                                  .weights = weights.data,
                                  .workspace = workspace.data};
    const double us = time_runs(device, prepared, at, sets);
    printf("{\"study\":\"group norm\",\"precision\":\"%s\",\"side\":%lld,\"channels\":%lld,\"modulated\":%s,"
           "\"batch\":%lld,\"row\":\"%s\",\"us\":%.2f,\"gigabytes_per_second\":%.0f}\n",
           tess_dtype_name(dtype), (long long)side, (long long)channels, modulated ? "true" : "false",
           (long long)batch, tess_prepared_kernel(prepared)->name, us, 1e-3 * bytes / us);
    device->ops->release(device, prepared);
    for (int i = 0; i < sets; i++)
        device->memory->free(device, &in[i]), device->memory->free(device, &out[i]);
    device->memory->free(device, &more), device->memory->free(device, &weights);
    device->memory->free(device, &workspace);
    return us;
}

static void time_batch(tess_device *const devices[ROWS], int64_t batch)
{
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int i = 0; i < COUNT; i++) {
            if (shapes[i].modulated)
                sum += shapes[i].modulated * time_shape(devices[r], i, batch, true);
            else
                sum += shapes[i].plain * time_shape(devices[r], i, batch, false);
            if (shapes[i].modulated && shapes[i].plain)
                sum += shapes[i].plain * time_shape(devices[r], i, batch, false);
        }
        printf("{\"study\":\"group norm\",\"precision\":\"%s\",\"batch\":%lld,\"row\":\"%s\","
               "\"ms_a_step\":%.3f}\n",
               tess_dtype_name(dtype), (long long)batch, rows[r], 1e-3 * sum);
    }
}

int main(int argc, char **argv)
{
    tess_device *devices[ROWS] = {NULL};
    const tess_device_options options = {.memory = &counter};
    const char *name = argc > 1 ? argv[1] : "bf16";
    if (strcmp(name, "fp32") != 0 && strcmp(name, "fp16") != 0 && strcmp(name, "bf16") != 0) {
        fputs("usage: norm_rates [fp32|fp16|bf16] [BATCH...]\n", stderr);
        return 2;
    }
    dtype = strcmp(name, "fp32") == 0 ? TESS_F32 : strcmp(name, "fp16") == 0 ? TESS_F16 : TESS_BF16;
    fill_values();
    for (int r = 0; r < ROWS; r++) {
        if (setenv("TESSERA_CUDA_ENGINE", rows[r], 1) != 0)
            return 1;
        need(tess_registry_open("cuda", &options, &devices[r], &error), &error);
    }
    for (int i = 2; i < argc; i++)
        time_batch(devices, atoll(argv[i]));
    for (int64_t batch = 1; argc <= 2 && batch <= 64; batch *= 8)
        time_batch(devices, batch);
    for (int r = 0; r < ROWS; r++)
        tess_registry_close(devices[r]);
    return 0;
}
