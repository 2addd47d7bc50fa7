#include "physics/mask.h"

#include <math.h>

typedef struct mask {
    tess_operator op; /* first: a tess_operator * is a mask * */
    tess_prepared *product;
    tess_block values;
} mask;

static void mask_apply(tess_operator *op, const void *in, void *out, void *scratch, tess_stream *stream)
{
    const mask *m = (const mask *)op;
    const tess_op_buffers buffers = {.in = {in, m->values.data}, .out = {out}, .workspace = scratch};
    op->device->ops->run(op->device, m->product, &buffers, stream);
}

static void mask_destroy(tess_operator *op)
{
    mask *m = (mask *)op;
    if (m->product)
        op->device->ops->release(op->device, m->product);
    op->device->memory->free(op->device, &m->values);
    tess_small_free(m);
}

static const tess_operator_table table = {
    .destroy = mask_destroy, .forward = mask_apply, .adjoint = mask_apply};

static tess_status build(mask *m, const float *values, tess_error *error)
{
    tess_device *device = m->op.device;
    const tess_tensor image = m->op.image;
    const tess_op op = {.kind = TESS_OP_SPECTRUM,
                        .outputs = 1,
                        .in = {image, tess_tensor_2d(TESS_F32, 1, image.h, image.w, 1)},
                        .out = {image},
                        .kernel = {1, 1, 1},
                        .stride = {1, 1, 1},
                        .inputs = 2};
    size_t image_bytes, bytes;
    if (!tess_tensor_bytes(&op.in[0], &image_bytes) || !tess_tensor_bytes(&op.in[1], &bytes))
        return tess_fail(error, TESS_OVER_LIMIT, "a mask of %lldx%lld pixels is too large",
                         (long long)image.h, (long long)image.w);
    for (int64_t i = 0; i < image.h * image.w; i++) {
        if (!isfinite(values[i]))
            return tess_fail(error, TESS_BAD_INPUT, "the mask has a value that is not a number, at row %lld",
                             (long long)(i / image.w));
        m->op.norm_squared = fmax(m->op.norm_squared, (double)values[i] * values[i]);
    }
    tess_op_needs needs;
    TESS_TRY(device->ops->query(device, &op, &needs, error));
    TESS_TRY(device->ops->prepare(device, &op, &m->product, error));
    TESS_TRY(device->memory->alloc(device, &m->values, TESS_MEM_WORKSPACE, bytes, error));
    device->memory->copy(device, m->values.data, values, bytes, NULL);
    m->op.scratch_bytes = needs.workspace;
    m->op.held_bytes = m->values.bytes;
    m->op.forward_flops = tess_op_flops(&op);
    m->op.forward_bytes = tess_op_traffic(&op);
    return device->streams->sync(device, NULL, error);
}

tess_status tess_mask_create(tess_device *device, int64_t height, int64_t width, int64_t channels,
                             const float *values, tess_operator **out, tess_error *error)
{
    *out = NULL;
    if (height < 1 || width < 1 || channels < 1)
        return tess_fail(error, TESS_BAD_OPTION, "a mask needs an image of at least one pixel");
    mask *m = tess_small_alloc(1, sizeof *m);
    if (!m)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a mask");
    const tess_tensor image = tess_tensor_2d(TESS_F32, 1, height, width, channels);
    m->op = (tess_operator){
        .table = &table, .device = device, .name = "mask", .image = image, .measurement = image};
    tess_status status = build(m, values, error);
    if (status != TESS_OK) {
        mask_destroy(&m->op);
        return status;
    }
    *out = &m->op;
    return TESS_OK;
}
