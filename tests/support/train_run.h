/* train_run.h: one op with several outputs on any device, from fields on the host to fields on the host. Outputs hold
 * their values before the op, because some ops read or add to them. */
#ifndef TESS_TESTS_TRAIN_RUN_H
#define TESS_TESTS_TRAIN_RUN_H

#include "op_run.h"

typedef struct train_call {
    tess_op op;
    field in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS];
    int over; /* 1 + the input whose memory out[0] shares; 0: none */
} train_call;

static inline void train_run_once(tess_device *device, const train_call *call, const tess_prepared *prepared,
                                  const tess_op_buffers *buffers, field results[TESS_OP_OUTPUTS])
{
    tess_error error = {{0}};
    for (int i = 0; i < call->op.outputs; i++) {
        const field *before = i == 0 && call->over ? &call->in[call->over - 1] : &call->out[i];
        device->memory->copy(device, buffers->out[i], before->data, before->bytes, NULL);
    }
    device->ops->run(device, prepared, buffers, NULL);
    for (int i = 0; i < call->op.outputs; i++)
        device->memory->copy(device, results[i].data, buffers->out[i], results[i].bytes, NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
}

/* Runs the op twice, to the same bits and without an allocation; the results replace the outputs. False: the device
 * does not do the op. */
static inline bool train_run(tess_device *device, train_call *call, const char *name)
{
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_error error = {{0}};
    const bool done = device->ops->query(device, &call->op, &needs, &error) == TESS_OK &&
                      device->ops->prepare(device, &call->op, &prepared, &error) == TESS_OK;
    CHECK_MSG(done, "%s: %s", name, error.text);
    if (!done)
        return false;
    tess_block in[TESS_OP_INPUTS], out[TESS_OP_OUTPUTS], workspace = op_upload(device, NULL, needs.workspace);
    tess_op_buffers buffers = {.workspace = workspace.data};
    field first[TESS_OP_OUTPUTS], again[TESS_OP_OUTPUTS];
    for (int i = 0; i < call->op.outputs; i++) {
        out[i] = op_upload(device, NULL, call->out[i].bytes);
        buffers.out[i] = out[i].data;
        first[i] = (field){malloc(call->out[i].bytes), call->out[i].bytes};
        again[i] = (field){malloc(call->out[i].bytes), call->out[i].bytes};
    }
    for (int i = 0; i < call->op.inputs; i++) {
        in[i] = op_upload(device, call->in[i].data, call->in[i].bytes);
        buffers.in[i] = i == call->over - 1 ? out[0].data : in[i].data;
    }
    train_run_once(device, call, prepared, &buffers, first);
    const uint64_t calls = tess_mem_calls();
    train_run_once(device, call, prepared, &buffers, again);
    CHECK_MSG(tess_mem_calls() == calls, "%s allocated while running", name);
    for (int i = 0; i < call->op.outputs; i++) {
        CHECK_MSG(memcmp(first[i].data, again[i].data, first[i].bytes) == 0, "%s: two runs differ", name);
        memcpy(call->out[i].data, first[i].data, first[i].bytes);
        free(first[i].data), free(again[i].data);
        device->memory->free(device, &out[i]);
    }
    for (int i = 0; i < call->op.inputs; i++)
        device->memory->free(device, &in[i]);
    device->memory->free(device, &workspace);
    device->ops->release(device, prepared);
    return true;
}

/* A flat vector, and one over memory of the caller. */
static inline tess_tensor vector_of(tess_dtype dtype, int64_t count)
{
    return tess_tensor_2d(dtype, 1, 1, 1, count);
}

static inline field over_memory(void *data, int64_t count, tess_dtype dtype)
{
    return (field){data, (size_t)count * tess_dtype_size(dtype)};
}

#endif
