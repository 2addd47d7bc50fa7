/* Times the ops of statistics on one device; a JSON line each with the median of some rounds:
 *
 *   moments_rates cpu|cuda moments|score PIXELS CHANNELS [TFLOPS]
 *   moments_rates cpu|cuda local SIDE CHANNELS OUTER INNER
 *
 * of_copy is the share of the device's copy bandwidth (bytes read and written, measured here) that the pixels, read
 * once, reach; of_matrix the share of TFLOPS, the device's fp64 matrix rate by its data sheet (67 on an H200). Operations are
 * those of op/row.c: of second moments, one triangle. The larger share says what binds. cpu_ms is the least processor time of a run, of all threads together, which says more where others use the machine.
 * GB/s are of the pixels, read once. Random correlated pixels: bench/peers/numpy_stats.py times NumPy on the like. */
#include <string.h>
#include <time.h>

#include "base/rng.h"
#include "device/kernel.h"
#include "op/row.h"
#include "rates.h"
#include "tensor/moments.h"

enum { ROUNDS = 7, FILL = 1 << 20 };
static tess_memory counter;
static tess_error error;
static float values[FILL];

static tess_block take(tess_device *device, const tess_tensor *t, bool fill)
{
    tess_block block;
    size_t bytes = 0;
    if (!tess_tensor_bytes(t, &bytes))
        exit(1);
    need(device->memory->alloc(device, &block, TESS_MEM_WORKSPACE, bytes, &error), &error);
    for (size_t at = 0; fill && at < bytes; at += sizeof values)
        device->memory->copy(device, (char *)block.data + at, values,
                             bytes - at < sizeof values ? bytes - at : sizeof values, NULL);
    need(device->streams->sync(device, NULL, &error), &error);
    return block;
}

/* Median seconds of one run; a card's are of several, since a clock on the host sees the launches too. */
static double time_op(tess_device *device, const tess_op *op, const char **row, double *busy)
{
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_op_buffers at = {0};
    tess_block in[TESS_OP_INPUTS], out, workspace;
    double seconds[ROUNDS];
    const int runs = device->graphs ? 10 : 1;
    need(device->ops->query(device, op, &needs, &error), &error);
    need(device->ops->prepare(device, op, &prepared, &error), &error);
    for (int i = 0; i < op->inputs; i++) {
        in[i] = take(device, &op->in[i], true);
        at.in[i] = in[i].data;
    }
    out = take(device, &op->out[0], false);
    need(device->memory->alloc(device, &workspace, TESS_MEM_WORKSPACE, needs.workspace, &error), &error);
    at.out[0] = out.data;
    at.workspace = workspace.data;
    for (int r = -1; r < ROUNDS; r++) { /* the first is to warm up */
        const double start = tess_clock();
        const clock_t used = clock();
        for (int i = 0; i < runs; i++)
            device->ops->run(device, prepared, &at, NULL);
        need(device->streams->sync(device, NULL, &error), &error);
        const double processor = (double)(clock() - used) / CLOCKS_PER_SEC / runs;
        *busy = r < 0 || processor < *busy ? processor : *busy;
        if (r >= 0)
            seconds[r] = (tess_clock() - start) / runs;
    }
    *row = tess_prepared_kernel(prepared)->name;
    device->ops->release(device, prepared);
    for (int i = 0; i < op->inputs; i++)
        device->memory->free(device, &in[i]);
    device->memory->free(device, &out), device->memory->free(device, &workspace);
    qsort(seconds, ROUNDS, sizeof *seconds, by_value);
    return seconds[ROUNDS / 2];
}

/* Bytes read and written a second by copies of a gibibyte inside of the device's memory. */
static double copy_rate(tess_device *device)
{
    const tess_tensor t = tess_tensor_2d(TESS_F32, 1, 1, 1 << 20, 256);
    tess_block from = take(device, &t, true), to = take(device, &t, false);
    double best = 0;
    for (int r = 0; r < ROUNDS; r++) {
        const int runs = device->graphs ? 10 : 1;
        const double start = tess_clock();
        for (int i = 0; i < runs; i++)
            device->memory->copy(device, to.data, from.data, (size_t)1 << 30, NULL);
        need(device->streams->sync(device, NULL, &error), &error);
        const double rate = 2.0 * runs * (double)(1 << 30) / (tess_clock() - start);
        best = rate > best ? rate : best;
    }
    device->memory->free(device, &from), device->memory->free(device, &to);
    return best;
}

static tess_op op_of(int argc, char **argv)
{
    tess_op op = {.inputs = 1, .outputs = 1, .kernel = {1, 1, 1}, .stride = {1, 1, 1}};
    const int64_t size = atoll(argv[3]), c = atoll(argv[4]);
    if (strcmp(argv[2], "local") == 0 && argc > 6) {
        op.kind = TESS_OP_LOCAL_RX;
        op.kernel[TESS_HEIGHT] = op.kernel[TESS_WIDTH] = atoi(argv[5]);
        op.local_rx = (tess_op_local_rx){atoi(argv[6]), 1e-6};
        op.in[0] = tess_tensor_2d(TESS_F32, 1, size, size, c);
        op.out[0] = tess_tensor_2d(TESS_F32, 1, size, size, 1);
        return op;
    }
    op.in[0] = tess_tensor_2d(TESS_F32, 1, 1, size, c);
    if (strcmp(argv[2], "score") == 0) {
        op.kind = TESS_OP_SCORE;
        op.inputs = 3;
        op.in[1] = tess_tensor_2d(TESS_F32, 1, 1, 1, c);
        op.in[2] = tess_tensor_2d(TESS_F32, 1, 1, c, c);
        op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, size, 1);
    } else {
        op.kind = TESS_OP_MOMENTS;
        op.moments.covariance = true;
        op.out[0] = tess_tensor_2d(TESS_F64, 1, 1, 1, (int64_t)tess_moments_values((int)c, true));
    }
    return op;
}

int main(int argc, char **argv)
{
    if (argc < 5) {
        fputs("usage: moments_rates cpu|cuda moments|score PIXELS CHANNELS [TFLOPS]\n"
              "       moments_rates cpu|cuda local SIDE CHANNELS OUTER INNER\n",
              stderr);
        return 2;
    }
    const tess_device_options options = {.memory = &counter};
    tess_device *device = NULL;
    tess_rng_normal((tess_rng_key){1, 1, 1}, 0, FILL, values);
    for (int i = 1; i < FILL; i++)
        values[i] = 100 + 10 * values[i] + 0.5f * (values[i - 1] - 100);
    need(tess_registry_open(argv[1], &options, &device, &error), &error);
    const tess_op op = op_of(argc, argv);
    const char *row = NULL;
    double busy = 0;
    const double seconds = time_op(device, &op, &row, &busy);
    const double bytes = 4 * (double)op.in[0].w * (double)op.in[0].h * (double)op.in[0].c,
                 flops = tess_op_flops(&op) / seconds, copy = copy_rate(device),
                 matrix = op.kind != TESS_OP_LOCAL_RX && argc > 5 ? 1e12 * atof(argv[5]) : 0;
    printf("{\"study\":\"statistics\",\"device\":\"%s\",\"op\":\"%s\",\"row\":\"%s\",\"size\":%s,"
           "\"channels\":%s,\"ms\":%.3f,\"cpu_ms\":%.3f,\"gflops\":%.1f,\"gb_per_second\":%.1f,"
           "\"copy_gb_per_second\":%.1f,\"of_copy\":%.3f",
           argv[1], argv[2], row, argv[3], argv[4], 1e3 * seconds, 1e3 * busy, 1e-9 * flops,
           1e-9 * bytes / seconds, 1e-9 * copy, bytes / seconds / copy);
    if (matrix > 0)
        printf(",\"of_matrix\":%.3f", flops / matrix);
    puts("}");
    tess_registry_close(device);
    return 0;
}
