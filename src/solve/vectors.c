#include "solve/vectors.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { ALIGN = 256 };

size_t tess_vector_bytes(const tess_tensor *shape)
{
    return tess_align_size((size_t)(shape->n * shape->d * shape->h * shape->w * shape->c) * sizeof(float),
                           ALIGN);
}

static tess_op dot_op(const tess_tensor *shape)
{
    tess_op op;
    memset(&op, 0, sizeof op);
    op.kind = TESS_OP_DOT;
    op.outputs = 1;
    op.in[0] = op.in[1] = *shape;
    op.out[0] = tess_tensor_2d(TESS_F64, 1, 1, 1, 1);
    op.inputs = 2;
    return op;
}

tess_status tess_vectors_scratch(tess_device *device, const tess_tensor *shape, size_t *bytes,
                                 tess_error *error)
{
    const tess_op op = dot_op(shape);
    tess_op_needs needs;
    TESS_TRY(device->ops->query(device, &op, &needs, error));
    *bytes = ALIGN + tess_align_size(needs.workspace, ALIGN); /* the result, then the workspace */
    return TESS_OK;
}

tess_status tess_vectors_open(tess_vectors *v, tess_device *device, const tess_tensor *shape,
                              tess_share *share, void *scratch, tess_error *error)
{
    *v = (tess_vectors){.device = device, .shape = *shape, .scratch = scratch, .share = share};
    const tess_op op = dot_op(shape);
    return device->ops->prepare(device, &op, &v->dot, error);
}

void tess_vectors_close(tess_vectors *v)
{
    if (v->dot)
        v->device->ops->release(v->device, v->dot);
    v->dot = NULL;
}

tess_status tess_vectors_sum(const tess_vectors *v, const tess_sum *sum, void *out, tess_error *error)
{
    const bool clamped = sum->high > sum->low;
    tess_op op;
    memset(&op, 0, sizeof op);
    op.kind = TESS_OP_COMBINE;
    op.outputs = 1;
    op.in[0] = op.out[0] = op.in[1] = op.in[2] = v->shape;
    op.inputs = 1 + (sum->z ? 2 : sum->y ? 1 : 0);
    op.combine = (tess_op_combine){sum->a, sum->b, sum->c, clamped ? sum->low : -INFINITY,
                                   clamped ? sum->high : INFINITY};
    tess_prepared *prepared = NULL;
    const tess_status status = v->device->ops->prepare(v->device, &op, &prepared, error);
    if (status != TESS_OK)
        return tess_share_keep(v->share, status, error);
    const tess_op_buffers buffers = {.in = {sum->x, sum->y, sum->z}, .out = {out}};
    v->device->ops->run(v->device, prepared, &buffers, NULL);
    v->device->ops->release(v->device, prepared);
    return TESS_OK;
}

tess_status tess_vectors_dot(const tess_vectors *v, const void *x, const void *y, double *dot,
                             tess_error *error)
{
    char *at = v->scratch;
    const tess_op_buffers buffers = {.in = {x, y}, .out = {at}, .workspace = at + ALIGN};
    v->device->ops->run(v->device, v->dot, &buffers, NULL);
    v->device->memory->copy(v->device, dot, at, sizeof *dot, NULL);
    TESS_TRY(tess_share_keep(v->share, v->device->streams->sync(v->device, NULL, error), error));
    return tess_share_add(v->share, TESS_SHARE_SUM, dot, error);
}
