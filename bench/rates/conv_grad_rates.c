/* Times the gradients of convolution parameters (CONV_GRAD) of DRUNet and DnCNN at full width on the card: each shape
 * with each row that takes it, and as a pair of layers in one op. Prints a JSON line for each, and the sum over a network's
 * layers by its fastest rows; milliseconds are those of one layer.
 *
 *   conv_grad_rates [BATCH...]        128 x 128 crops in bf16, batches of 16 and 64 by default */
#define _GNU_SOURCE
#include <stdint.h>
#include <string.h>

#include "device/kernel.h"
#include "rates.h"

enum { RUNS = 10, ROUNDS = 5, FILL = 1 << 22, ROWS = 3 };
static const char *const rows[ROWS] = {"hopper", "cudnn", "generic"};
static tess_memory counter;
static tess_error error;

typedef struct shape {
    const char *name;
    int drunet, dncnn; /* layers of this shape in each network */
    int64_t side, cin, cout;
    int kernel, stride;
    int image; /* 1: the input is an fp32 image, 2: the gradient is */
    bool bias;
} shape;

static const shape shapes[] = {
    {"first 4>64", 1, 0, 128, 4, 64, 3, 1, 1, false},
    {"first 3>64", 0, 1, 128, 3, 64, 3, 1, 1, true},
    {"64>64", 16, 0, 128, 64, 64, 3, 1, 0, false},
    {"64>64 bias", 0, 18, 128, 64, 64, 3, 1, 0, true},
    {"128>128", 16, 0, 64, 128, 128, 3, 1, 0, false},
    {"256>256", 16, 0, 32, 256, 256, 3, 1, 0, false},
    {"512>512", 8, 0, 16, 512, 512, 3, 1, 0, false},
    {"down 64>128", 2, 0, 128, 64, 128, 2, 2, 0, false}, /* and the transposed convolution of the way back */
    {"down 128>256", 2, 0, 64, 128, 256, 2, 2, 0, false},
    {"down 256>512", 2, 0, 32, 256, 512, 2, 2, 0, false},
    {"last 64>3", 1, 1, 128, 64, 3, 3, 1, 2, false},
};
enum { COUNT = sizeof shapes / sizeof shapes[0] };

static tess_op op_of(const shape *s, int64_t batch, int layers)
{
    const int64_t out = s->side / s->stride;
    tess_op op = {.kind = TESS_OP_CONV_GRAD, .inputs = 2 * layers, .outputs = layers > 1 || s->bias ? 2 : 1};
    op.in[0] = tess_tensor_2d(s->image == 1 ? TESS_F32 : TESS_BF16, batch, s->side, s->side, s->cin);
    op.in[1] = tess_tensor_2d(s->image == 2 ? TESS_F32 : TESS_BF16, batch, out, out, s->cout);
    op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, 1, s->cin * s->cout * s->kernel * s->kernel);
    op.out[1] = tess_tensor_2d(TESS_F32, 1, 1, 1, s->cout);
    if (layers > 1) {
        op.in[2] = op.in[0];
        op.in[3] = op.in[1];
        op.out[1] = op.out[0];
    }
    for (int i = 0; i < TESS_SPATIAL; i++) {
        op.kernel[i] = i == TESS_DEPTH ? 1 : s->kernel;
        op.stride[i] = i == TESS_DEPTH ? 1 : s->stride;
        op.pad_before[i] = op.pad_after[i] = i > TESS_DEPTH && s->kernel == 3 ? 1 : 0;
    }
    return op;
}

/* Small numbers of both signs, in bf16 as in fp32: a card draws less power, and so runs faster, on zeros. */
static void *take(tess_device *device, size_t bytes, tess_block *block)
{
    static uint16_t values[FILL / 2];
    for (uint32_t i = 0, state = 1; i < FILL / 2 && !values[FILL / 2 - 1]; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (uint16_t)((state >> 16 & 0x8000u) | 0x3c00u | (state >> 20 & 0x1ffu));
    }
    need(device->memory->alloc(device, block, TESS_MEM_WORKSPACE, bytes ? bytes : 1, &error), &error);
    for (size_t at = 0; at < bytes; at += FILL)
        device->memory->copy(device, (char *)block->data + at, values, bytes - at < FILL ? bytes - at : FILL,
                             NULL);
    need(device->streams->sync(device, NULL, &error), &error);
    return block->data;
}

static double time_runs(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *at)
{
    tess_event *from = NULL, *to = NULL;
    double ms[ROUNDS];
    need(device->streams->event_create(device, &from, &error), &error);
    need(device->streams->event_create(device, &to, &error), &error);
    device->ops->run(device, prepared, at, NULL);
    for (int r = 0; r < ROUNDS; r++) {
        device->streams->record(device, from, NULL);
        for (int i = 0; i < RUNS; i++)
            device->ops->run(device, prepared, at, NULL);
        device->streams->record(device, to, NULL);
        need(device->streams->sync(device, NULL, &error), &error);
        ms[r] = 1e3 * device->streams->elapsed(device, from, to) / RUNS;
    }
    device->streams->event_destroy(device, from);
    device->streams->event_destroy(device, to);
    qsort(ms, ROUNDS, sizeof *ms, by_value);
    return ms[ROUNDS / 2];
}

/* Median milliseconds; 0 if the row does not take the op. */
static double time_op(tess_device *device, const tess_op *op, const char *row, size_t *workspace)
{
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    enum { INPUTS = 4, BLOCKS = INPUTS + 3 };
    tess_block blocks[BLOCKS] = {{0}};
    tess_op_buffers at = {0};
    double ms = 0;
    if (device->ops->query(device, op, &needs, &error) != TESS_OK)
        return 0; /* no row takes pairs of this shape */
    need(device->ops->prepare(device, op, &prepared, &error), &error);
    *workspace = needs.workspace;
    if (strcmp(tess_prepared_kernel(prepared)->name, row) == 0) {
        for (int i = 0; i < op->inputs; i++) {
            size_t bytes = 0;
            if (!tess_tensor_bytes(&op->in[i], &bytes))
                exit(1);
            at.in[i] = take(device, bytes, &blocks[i]);
        }
        for (int i = 0; i < op->outputs; i++)
            at.out[i] = take(device, (size_t)op->out[i].c * sizeof(float), &blocks[INPUTS + i]);
        at.workspace = take(device, needs.workspace, &blocks[BLOCKS - 1]);
        ms = time_runs(device, prepared, &at) / (op->inputs / 2);
        for (int i = 0; i < BLOCKS; i++)
            device->memory->free(device, &blocks[i]);
    }
    device->ops->release(device, prepared);
    return ms;
}

/* Milliseconds of a layer in an op of one or two, printed; 0 if the row does not take it. */
static double report(tess_device *device, const shape *s, int64_t batch, const char *row, int layers)
{
    const tess_op op = op_of(s, batch, layers);
    size_t workspace = 0;
    const double ms = s->bias && layers > 1 ? 0 : time_op(device, &op, row, &workspace);
    if (ms > 0)
        printf("{\"study\":\"gradients\",\"shape\":\"%s\",\"batch\":%lld,\"row\":\"%s\",\"layers\":%d,"
               "\"ms\":%.4f,\"tflops\":%.0f,\"workspace_mib\":%.1f}\n",
               s->name, (long long)batch, row, layers, ms, 1e-9 * tess_op_flops(&op) / layers / ms,
               (double)workspace / (1 << 20));
    return ms;
}

static void time_batch(tess_device *const devices[ROWS], int64_t batch)
{
    double sums[2] = {0, 0};
    for (int i = 0; i < COUNT; i++) {
        double best = 0;
        for (int r = 0; r < ROWS; r++)
            for (int layers = 1; layers <= 2; layers++) {
                const double ms = report(devices[r], &shapes[i], batch, rows[r], layers);
                best = ms > 0 && (best <= 0 || ms < best) ? ms : best;
            }
        sums[0] += best * shapes[i].drunet;
        sums[1] += best * shapes[i].dncnn;
    }
    printf("{\"study\":\"gradients\",\"batch\":%lld,\"drunet_ms\":%.3f,\"dncnn_ms\":%.3f}\n",
           (long long)batch, sums[0], sums[1]);
}

int main(int argc, char **argv)
{
    tess_device *devices[ROWS] = {NULL};
    const tess_device_options options = {.memory = &counter};
    for (int r = 0; r < ROWS; r++) {
        if (setenv("TESSERA_CUDA_ENGINE", rows[r], 1) != 0)
            return 1;
        need(tess_registry_open("cuda", &options, &devices[r], &error), &error);
    }
    for (int i = 1; i < argc; i++)
        time_batch(devices, atoll(argv[i]));
    if (argc == 1) {
        time_batch(devices, 16);
        time_batch(devices, 64);
    }
    for (int r = 0; r < ROWS; r++)
        tess_registry_close(devices[r]);
    return 0;
}
