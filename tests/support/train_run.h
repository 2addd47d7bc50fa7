/* train_run.h: ops that change values of the caller, over op_outputs.h: the results replace the outputs, as an optimizer's
 * step after step. */
#ifndef TESS_TESTS_TRAIN_RUN_H
#define TESS_TESTS_TRAIN_RUN_H

#include "op_outputs.h"

/* False: the device does not do the op, whose tensors are those of call->op. */
static inline bool train_update(tess_device *device, train_call *call, const char *name)
{
    operand got[TESS_OP_OUTPUTS];
    for (int i = 0; i < call->op.inputs; i++)
        call->in[i].t = call->op.in[i];
    for (int i = 0; i < call->op.outputs; i++)
        call->out[i].t = call->op.out[i];
    if (!train_run(device, call, got, name))
        return false;
    for (int i = 0; i < call->op.outputs; i++) {
        memcpy(call->out[i].f.data, got[i].f.data, got[i].f.bytes);
        free(got[i].f.data);
    }
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
