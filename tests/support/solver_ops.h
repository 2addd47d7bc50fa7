/* solver_ops.h: runs one op of the solvers on a device that computes in host memory. */
#ifndef TESS_TESTS_SOLVER_OPS_H
#define TESS_TESTS_SOLVER_OPS_H

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "device/device.h"

static inline tess_device *open_cpu(int threads)
{
    tess_device *device = NULL;
    tess_error error;
    if (tess_registry_open("cpu", &(tess_device_options){.memory = &test_counter, .threads = threads},
                           &device, &error) != TESS_OK) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return device;
}

static inline float *random_floats(uint32_t item, int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    if (!values)
        exit(1);
    tess_rng_normal((tess_rng_key){.seed = 21, .item = item}, 0, count, values);
    return values;
}

/* Nothing may be allocated while it runs; the workspace begins at no particular address and as garbage. */
static inline bool run_op(tess_device *device, tess_op op, tess_op_buffers buffers)
{
    for (int k = 0; k < TESS_SPATIAL; k++)
        op.kernel[k] = op.stride[k] = 1;
    tess_error error = {""};
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    if (device->ops->query(device, &op, &needs, &error) != TESS_OK ||
        device->ops->prepare(device, &op, &prepared, &error) != TESS_OK) {
        CHECK_MSG(false, "%s", error.text);
        return false;
    }
    char *workspace = malloc(needs.workspace + 8);
    memset(workspace, 0xff, needs.workspace + 8);
    buffers.workspace = workspace + (op.kind == TESS_OP_FFT || op.kind == TESS_OP_FILTER ? 4 : 0);
    const uint64_t calls = tess_mem_calls();
    device->ops->run(device, prepared, &buffers, NULL);
    CHECK(tess_mem_calls() == calls);
    device->ops->release(device, prepared);
    free(workspace);
    return true;
}

#endif
