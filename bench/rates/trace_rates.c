/* trace_rates: what recording costs an op, in nanoseconds: a tiny op on a device that records nothing, and on one that
 * records spans and profiles. A network's ops take tens of microseconds and more. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/trace.h"
#include "device/device.h"

enum { RUNS = 20000, REPEATS = 25, VALUES = 16 };

static double run_many(tess_device *device, const tess_prepared *prepared, float *values)
{
    const tess_op_buffers buffers = {.in = {values}, .out = {values}};
    const double start = tess_clock();
    for (int i = 0; i < RUNS; i++)
        device->ops->run(device, prepared, &buffers, NULL);
    return 1e9 * (tess_clock() - start) / RUNS;
}

static tess_status measure(tess_trace *trace, double *least, tess_error *error)
{
    tess_memory memory = {.trace = trace};
    const tess_device_options options = {.threads = 1, .memory = &memory};
    tess_device *device = NULL;
    TESS_TRY(tess_registry_open("cpu", &options, &device, error));
    tess_op op;
    memset(&op, 0, sizeof op);
    op.kind = TESS_OP_COMBINE;
    op.inputs = op.outputs = 1;
    op.in[0] = op.out[0] = tess_tensor_2d(TESS_F32, 1, 1, 1, VALUES);
    op.combine = (tess_op_combine){.a = 1, .low = -INFINITY, .high = INFINITY};
    float values[VALUES] = {0};
    tess_prepared *prepared = NULL;
    const tess_status status = device->ops->prepare(device, &op, &prepared, error);
    if (status == TESS_OK) {
        *least = fmin(*least, run_many(device, prepared, values));
        device->ops->release(device, prepared);
    }
    tess_registry_close(device);
    return status;
}

int main(void)
{
    double off = INFINITY, on = INFINITY;
    tess_error error = {""};
    tess_status status = TESS_OK;
    for (int i = 0; i < REPEATS && status == TESS_OK; i++) {
        tess_trace *trace = tess_trace_create(RUNS, true);
        status = measure(NULL, &off, &error);
        if (status == TESS_OK && trace)
            status = measure(trace, &on, &error);
        tess_trace_destroy(trace);
    }
    if (status != TESS_OK) {
        fprintf(stderr, "trace_rates: %s\n", error.text);
        return 1;
    }
    printf("{\"op_ns\":%.1f,\"recorded_op_ns\":%.1f,\"recording_ns\":%.1f}\n", off, on, on - off);
    return 0;
}
