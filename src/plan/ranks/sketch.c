#include "plan/ranks/sketch.h"

#include "op/row.h"

static size_t granted(tess_device *device, size_t bytes)
{
    (void)device;
    return bytes;
}

/* A convolution of an upsampled image is not fused, because strips cannot have it. */
static tess_status query(tess_device *device, const tess_op *op, tess_op_needs *needs, tess_error *error)
{
    (void)device;
    tess_op_param params[TESS_OP_PARAMS];
    if (op->kind != TESS_OP_SIDE_SUM) /* of a strip: no kernel does it yet, but it can be planned */
        TESS_TRY(tess_op_check(op, error));
    *needs = (tess_op_needs){.block = 1};
    if (op->kind == TESS_OP_UP_CONV)
        return tess_fail(error, TESS_UNSUPPORTED, "a machine of a file does not fuse upsampling");
    for (int i = 0, count = tess_op_params(op, params); i < count; i++)
        needs->weights +=
            (size_t)params[i].rows * (size_t)params[i].row * tess_dtype_size(tess_op_precision(op));
    return TESS_OK;
}

/* A plan that was never prepared has nothing to release. */
static void release(tess_device *device, tess_prepared *prepared)
{
    (void)device, (void)prepared;
}

void tess_sketch_open(tess_device *device)
{
    static const tess_device_memory memory = {.granted = granted};
    static const tess_device_ops ops = {.query = query, .release = release};
    *device = (tess_device){.kind = "sketch", .memory = &memory, .ops = &ops};
}
