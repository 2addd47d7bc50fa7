/* Measures where the time of a network is spent: times every op of its plan for one window alone; equal ops are timed
 * once. Prints a JSON line for each kind of op, the slowest first, and one for their sum.
 *
 *   op_rates DEVICE MODEL HEIGHT WIDTH            e.g. op_rates cuda drunet-color-small 2048 2048
 *   op_rates DEVICE MODEL DEPTH HEIGHT WIDTH      a 2-D model made 3-D: op_rates cuda wide.safetensors 56 504 504 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "job/common/engine.h"
#include "net/plan.h"

static tess_memory counter;

enum { REPEATS = 5, MOST = 256, FILL = 1 << 24 };

typedef struct rate {
    char name[96];
    int count;
    double ms, flops, bytes;
} rate;

static tess_engine engine;
static tess_error error;

static void need(tess_status status)
{
    if (status == TESS_OK)
        return;
    fprintf(stderr, "%s\n", error.text);
    exit(1);
}

/* Small numbers of both signs, in fp16 as in fp32: a card draws less power, and so runs faster, on zeros. */
static void fill(tess_block *block)
{
    static uint16_t values[FILL / 2];
    tess_device *device = engine.device;
    for (uint32_t i = 0, state = 1; i < FILL / 2 && !values[FILL / 2 - 1]; i++) {
        state = state * 1664525u + 1013904223u;
        values[i] = (uint16_t)((state >> 16 & 0x8000u) | 0x2c00u | (state >> 20 & 0x3ffu));
    }
    for (size_t at = 0; at < block->bytes; at += FILL)
        device->memory->copy(device, (char *)block->data + at, values,
                             block->bytes - at < FILL ? block->bytes - at : FILL, NULL);
    need(device->streams->sync(device, NULL, &error));
}

static void *take(const tess_tensor *t, size_t bytes, tess_block *block)
{
    if (t && !tess_tensor_bytes(t, &bytes))
        exit(1);
    need(engine.device->memory->alloc(engine.device, block, TESS_MEM_WORKSPACE, bytes ? bytes : 1, &error));
    fill(block);
    return block->data;
}

/* Median milliseconds. */
static double time_op(const tess_op *op)
{
    tess_device *device = engine.device;
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_block blocks[7] = {{0}};
    double times[REPEATS];
    need(device->ops->query(device, op, &needs, &error));
    need(device->ops->prepare(device, op, &prepared, &error));
    tess_op_buffers at = {.in = {take(&op->in[0], 0, &blocks[0])},
                          .out = {take(&op->out[0], 0, &blocks[1])},
                          .weights = take(NULL, needs.weights, &blocks[2]),
                          .workspace = take(NULL, needs.workspace, &blocks[3])};
    for (int r = 0; r < tess_op_residuals(op); r++)
        at.in[1 + r] = take(&op->in[1 + r], 0, &blocks[4 + r]);
    if (op->mapped)
        at.in[op->inputs - 1] = take(tess_op_map(op), 0, &blocks[6]);
    for (int i = -1; i < REPEATS; i++) {
        const double start = tess_clock();
        device->ops->run(device, prepared, &at, NULL);
        need(device->streams->sync(device, NULL, &error));
        const double ms = 1e3 * (tess_clock() - start);
        int place = i < 0 ? 0 : i;
        for (; place > 0 && times[place - 1] > ms; place--)
            times[place] = times[place - 1];
        times[place] = ms;
    }
    device->ops->release(device, prepared);
    for (int i = 0; i < 7; i++)
        device->memory->free(device, &blocks[i]);
    return times[REPEATS / 2];
}

/* Ops are alike when they have one name. */
static void name_of(const tess_op *op, char *text, size_t size)
{
    char class[64];
    tess_op_class(op, class, sizeof class);
    snprintf(text, size, "%s %s>%s +%d%s, %lldx%lldx%lld", class, tess_dtype_name(op->in[0].dtype),
             tess_dtype_name(op->out[0].dtype), tess_op_residuals(op), op->mapped ? " map" : "",
             (long long)op->out[0].d, (long long)op->out[0].h, (long long)op->out[0].w);
}

static int dearest(const void *a, const void *b)
{
    const rate *x = a, *y = b;
    const double first = x->ms * x->count, second = y->ms * y->count;
    return (first < second) - (first > second);
}

static void tell(const char *name, int count, double ms, double flops, double bytes)
{
    printf("{\"study\":\"ops\",\"engine\":\"tessera\",\"op\":\"%s\",\"count\":%d,\"ms\":%.4f,\"all_ms\":%.3f,"
           "\"tflops\":%.1f,\"gigabytes_per_second\":%.0f}\n",
           name, count, ms, ms * count, 1e-9 * flops / ms, 1e-6 * bytes / ms);
}

int main(int argc, char **argv)
{
    static rate rates[MOST];
    if (argc != 5 && argc != 6) {
        fputs("usage: op_rates DEVICE MODEL [DEPTH] HEIGHT WIDTH\n", stderr);
        return 2;
    }
    tess_common common;
    tess_common_init(&common);
    common.device = argv[1];
    need(tess_engine_open(&engine, &counter, &common, &error));
    tess_engine_model *model = NULL;
    need(argc == 6 ? tess_engine_volume_of(&engine, argv[2], TESS_INFLATE_LEVEL, &model, &error)
                   : tess_engine_model_of(&engine, argv[2], &model, &error));
    const tess_plan_shape shape = {
        .n = 1, .d = argc == 6 ? atoll(argv[3]) : 0, .h = atoll(argv[argc - 2]), .w = atoll(argv[argc - 1])};
    tess_net_plan *plan = NULL;
    need(tess_net_plan_create(model->bound, shape, &plan, &error));
    int kinds = 0;
    rate sum = {.count = 1};
    for (int i = 0; i < tess_net_plan_op_count(plan); i++) {
        const tess_op *op = tess_net_plan_op(plan, i);
        char name[96];
        int at = 0;
        name_of(op, name, sizeof name);
        while (at < kinds && strcmp(rates[at].name, name) != 0)
            at++;
        if (at == MOST)
            return 1;
        if (at == kinds) {
            rates[kinds++] =
                (rate){.ms = time_op(op), .flops = tess_op_flops(op), .bytes = tess_op_traffic(op)};
            memcpy(rates[at].name, name, sizeof name);
        }
        rates[at].count++;
        sum.ms += rates[at].ms;
        sum.flops += rates[at].flops;
        sum.bytes += rates[at].bytes;
    }
    qsort(rates, (size_t)kinds, sizeof *rates, dearest);
    for (int i = 0; i < kinds; i++)
        tell(rates[i].name, rates[i].count, rates[i].ms, rates[i].flops, rates[i].bytes);
    tell("all", 1, sum.ms, sum.flops, sum.bytes);
    tess_net_plan_destroy(plan);
    tess_engine_close(&engine);
    return 0;
}
