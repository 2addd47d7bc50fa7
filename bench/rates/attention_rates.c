/* Times attention of the diffusion UNet's sizes on the card, by each row that takes it: a JSON line for each with microseconds,
 * TFLOP/s and exponentials a second, and for each batch and row one with the microseconds an image of a whole network
 * step, which has 5 layers of 32 x 32 pixels, 5 of 16 x 16 and one of 8 x 8.
 *
 *   attention_rates [fp16|bf16] [SHARP] [BATCH...]        bf16, 1, batches of 1, 8 and 64 by default
 *
 * SHARP multiplies queries, keys and values, which are uniform in -1 .. 1; the kernel for small heads computes
 * the largest scores too where they can be large (fp16: 4, bf16: 8). */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>

#include "device/kernel.h"
#include "op/row.h"
#include "rates.h"

enum { RUNS = 10, ROUNDS = 7, FILL = 1 << 20, ROWS = 2 };
static const char *const rows[ROWS] = {"attention", "small heads"};
static tess_memory counter;
static tess_error error;
static tess_dtype dtype = TESS_BF16;
static uint16_t values[FILL];

static const struct {
    int64_t side;
    int heads, layers; /* of this shape in the network */
} shapes[] = {{64, 16, 0}, {32, 16, 5}, {16, 32, 5}, {8, 32, 1}};
enum { COUNT = sizeof shapes / sizeof shapes[0], HEAD = 8 };

static void fill_values(float sharp)
{
    uint32_t state = 1;
    for (int i = 0; i < FILL; i++) {
        state = state * 1664525u + 1013904223u;
        const float value = sharp * ((float)(state >> 8) / (float)(1 << 23) - 1);
        values[i] = dtype == TESS_F16 ? tess_float_to_half(value) : tess_float_to_bf16(value);
    }
}

static void *take(tess_device *device, const tess_tensor *t, tess_block *block)
{
    size_t bytes = 0;
    if (!tess_tensor_bytes(t, &bytes))
        exit(1);
    need(device->memory->alloc(device, block, TESS_MEM_WORKSPACE, bytes, &error), &error);
    for (size_t at = 0; at < bytes; at += sizeof values)
        device->memory->copy(device, (char *)block->data + at, values,
                             bytes - at < sizeof values ? bytes - at : sizeof values, NULL);
    need(device->streams->sync(device, NULL, &error), &error);
    return block->data;
}

/* Median microseconds. */
static double time_runs(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *at)
{
    tess_event *from = NULL, *to = NULL;
    double us[ROUNDS];
    need(device->streams->event_create(device, &from, &error), &error);
    need(device->streams->event_create(device, &to, &error), &error);
    device->ops->run(device, prepared, at, NULL);
    for (int r = 0; r < ROUNDS; r++) {
        device->streams->record(device, from, NULL);
        for (int i = 0; i < RUNS; i++)
            device->ops->run(device, prepared, at, NULL);
        device->streams->record(device, to, NULL);
        need(device->streams->sync(device, NULL, &error), &error);
        us[r] = 1e6 * device->streams->elapsed(device, from, to) / RUNS;
    }
    device->streams->event_destroy(device, from);
    device->streams->event_destroy(device, to);
    qsort(us, ROUNDS, sizeof *us, by_value);
    return us[ROUNDS / 2];
}

static double time_shape(tess_device *device, int shape, int64_t batch)
{
    const int64_t side = shapes[shape].side, channels = (int64_t)shapes[shape].heads * HEAD;
    tess_op op = {.kind = TESS_OP_ATTENTION,
                  .inputs = 1,
                  .outputs = 1,
                  .kernel = {1, 1, 1},
                  .stride = {1, 1, 1},
                  .attention = {shapes[shape].heads, true}};
    op.in[0] = tess_tensor_2d(dtype, batch, side, side, 3 * channels);
    op.out[0] = tess_tensor_2d(dtype, batch, side, side, channels);
    tess_prepared *prepared = NULL;
    tess_block in, out;
    need(device->ops->prepare(device, &op, &prepared, &error), &error);
    const tess_op_buffers at = {.in = {take(device, &op.in[0], &in)},
                                .out = {take(device, &op.out[0], &out)}};
    const double us = time_runs(device, prepared, &at),
                 powers = (double)(batch * shapes[shape].heads) * (double)(side * side * side * side);
    printf("{\"study\":\"attention\",\"precision\":\"%s\",\"side\":%lld,\"heads\":%d,\"batch\":%lld,"
           "\"row\":\"%s\",\"us\":%.2f,\"tflops\":%.1f,\"tera_exponentials_per_second\":%.3f}\n",
           tess_dtype_name(dtype), (long long)side, shapes[shape].heads, (long long)batch,
           tess_prepared_kernel(prepared)->name, us, 1e-6 * tess_op_flops(&op) / us, 1e-6 * powers / us);
    device->ops->release(device, prepared);
    device->memory->free(device, &in), device->memory->free(device, &out);
    return us;
}

static void time_batch(tess_device *const devices[ROWS], int64_t batch)
{
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int i = 0; i < COUNT; i++)
            sum += shapes[i].layers * time_shape(devices[r], i, batch);
        printf("{\"study\":\"attention\",\"precision\":\"%s\",\"batch\":%lld,\"row\":\"%s\","
               "\"us_an_image\":%.2f}\n",
               tess_dtype_name(dtype), (long long)batch, rows[r], sum / (double)batch);
    }
}

int main(int argc, char **argv)
{
    tess_device *devices[ROWS] = {NULL};
    const tess_device_options options = {.memory = &counter};
    if (argc > 1 && strcmp(argv[1], "fp16") != 0 && strcmp(argv[1], "bf16") != 0) {
        fputs("usage: attention_rates [fp16|bf16] [SHARP] [BATCH...]\n", stderr);
        return 2;
    }
    if (argc > 1 && strcmp(argv[1], "fp16") == 0)
        dtype = TESS_F16;
    fill_values(argc > 2 ? strtof(argv[2], NULL) : 1);
    for (int r = 0; r < ROWS; r++) {
        if (setenv("TESSERA_CUDA_ENGINE", rows[r], 1) != 0)
            return 1;
        need(tess_registry_open("cuda", &options, &devices[r], &error), &error);
    }
    for (int i = 3; i < argc; i++)
        time_batch(devices, atoll(argv[i]));
    for (int64_t batch = 1; argc <= 3 && batch <= 64; batch *= 8)
        time_batch(devices, batch);
    for (int r = 0; r < ROWS; r++)
        tess_registry_close(devices[r]);
    return 0;
}
