/* op_run.h: one op on any device, from fields on the host to a field on the host; twice, to the same bits and without an
 * allocation. */
#ifndef TESS_TESTS_OP_RUN_H
#define TESS_TESTS_OP_RUN_H

#include "base/mem.h"
#include "device/device.h"
#include "fields.h"
#include "op/row.h"

typedef struct op_call {
    tess_op op;
    field in[TESS_OP_INPUTS], out; /* out: what its memory holds before */
    const float *param[TESS_OP_PARAMS];
    bool over; /* the output lies over in[0] */
} op_call;

static inline tess_block op_upload(tess_device *device, const void *data, size_t bytes)
{
    tess_block block;
    tess_error error = {{0}};
    CHECK_MSG(device->memory->alloc(device, &block, TESS_MEM_IO, bytes, &error) == TESS_OK, "%s", error.text);
    if (data)
        device->memory->copy(device, block.data, data, bytes, NULL);
    return block;
}

/* Parameters come in two pieces, as a loader may bring them. */
static inline void op_pack(tess_device *device, const op_call *call, void *packed)
{
    tess_op_param params[TESS_OP_PARAMS];
    const int count = tess_op_params(&call->op, params);
    for (int i = 0; i < count; i++) {
        const int64_t first = params[i].rows / 3;
        device->ops->pack(device, &call->op, i, 0, first, call->param[i], packed);
        device->ops->pack(device, &call->op, i, first, params[i].rows - first,
                          call->param[i] + first * params[i].row, packed);
    }
}

static inline void op_run_once(tess_device *device, const op_call *call, const tess_prepared *prepared,
                               const tess_op_buffers *buffers, void *result)
{
    tess_error error = {{0}};
    const field *before = call->over ? &call->in[0] : &call->out;
    device->memory->copy(device, buffers->out[0], before->data, before->bytes, NULL);
    device->ops->run(device, prepared, buffers, NULL);
    device->memory->copy(device, result, buffers->out[0], call->out.bytes, NULL);
    CHECK_MSG(device->streams->sync(device, NULL, &error) == TESS_OK, "%s", error.text);
}

/* The output's memory afterwards; its data is the caller's. NULL data: the device does not do the op. */
static inline field op_run(tess_device *device, const op_call *call, const char *name)
{
    tess_op_needs needs;
    tess_prepared *prepared = NULL;
    tess_error error = {{0}};
    field got = {NULL, call->out.bytes};
    const bool done = device->ops->query(device, &call->op, &needs, &error) == TESS_OK &&
                      device->ops->prepare(device, &call->op, &prepared, &error) == TESS_OK;
    CHECK_MSG(done, "%s: %s", name, error.text);
    if (!done)
        return got;
    tess_block in[TESS_OP_INPUTS], out = op_upload(device, NULL, call->out.bytes),
                                   weights = op_upload(device, NULL, needs.weights),
                                   workspace = op_upload(device, NULL, needs.workspace);
    tess_op_buffers buffers = {.out = {out.data}, .weights = weights.data, .workspace = workspace.data};
    for (int i = 0; i < call->op.inputs; i++) {
        in[i] = op_upload(device, call->in[i].data, call->in[i].bytes);
        buffers.in[i] = i == 0 && call->over ? out.data : in[i].data;
    }
    op_pack(device, call, weights.data);
    got.data = malloc(got.bytes);
    void *again = malloc(got.bytes);
    op_run_once(device, call, prepared, &buffers, got.data);
    const uint64_t calls = tess_mem_calls();
    op_run_once(device, call, prepared, &buffers, again);
    CHECK_MSG(tess_mem_calls() == calls, "%s allocated while running", name);
    CHECK_MSG(memcmp(got.data, again, got.bytes) == 0, "%s: two runs differ", name);
    device->ops->release(device, prepared);
    for (int i = 0; i < call->op.inputs; i++)
        device->memory->free(device, &in[i]);
    device->memory->free(device, &out), device->memory->free(device, &weights),
        device->memory->free(device, &workspace);
    free(again);
    return got;
}

/* As far as the table's bound allows from what should come out; also outside of the tensor, where nothing may change. */
static inline void op_compare(const op_call *call, const field *got, const field *want, double bound,
                              const char *name)
{
    double largest = 0;
    const double most = got->data ? difference(&call->op.out[0], got, want, &largest) : NAN;
    CHECK_MSG(most <= bound * largest, "%s %s: |a-b| %.3g of %.3g", name,
              tess_dtype_name(tess_op_precision(&call->op)), most, largest);
}

#endif
