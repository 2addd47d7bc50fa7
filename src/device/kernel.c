#include "device/kernel.h"

#include <string.h>

#include "op/row.h"

struct tess_prepared {
    tess_op op;
    const tess_kernel *kernel;
    void *state;
};

tess_status tess_kernel_refuse(tess_error *why, const char *reason)
{
    if (why && reason)
        return tess_fail(why, TESS_UNSUPPORTED, "%s", reason);
    if (why)
        why->text[0] = '\0';
    return TESS_UNSUPPORTED;
}

const tess_kernel *tess_kernel_named(const tess_device *device, const tess_op *op, const char *name)
{
    for (const tess_kernel *const *row = device->ops->kernels; *row; row++)
        if (strcmp((*row)->name, name) == 0 && (*row)->refuses(device, op, NULL) == TESS_OK)
            return *row;
    return NULL;
}

/* Called when every row has refused. The last row accepts the most ops, so its reason is reported. */
static tess_status refused(const tess_device *device, const tess_op *op, tess_error *error)
{
    tess_error why, last = {{0}};
    for (const tess_kernel *const *row = device->ops->kernels; *row; row++) {
        why.text[0] = '\0';
        if ((*row)->refuses(device, op, &why) != TESS_OK && why.text[0])
            last = why;
    }
    char text[64];
    tess_op_class(op, text, sizeof text);
    return tess_fail(error, TESS_UNSUPPORTED, "no kernel of the device %s does %s: %s", device->kind, text,
                     last.text[0] ? last.text : "it has none of this kind");
}

tess_status tess_kernel_choose(tess_device *device, const tess_op *op, const tess_kernel **out,
                               tess_error *error)
{
    TESS_TRY(tess_op_check(op, error));
    *out = device->ops->prefers ? device->ops->prefers(device, op) : NULL;
    for (const tess_kernel *const *row = device->ops->kernels; *row && !*out; row++)
        if ((*row)->refuses(device, op, NULL) == TESS_OK)
            *out = *row;
    return *out ? TESS_OK : refused(device, op, error);
}

const tess_op *tess_prepared_op(const tess_prepared *prepared)
{
    return &prepared->op;
}

const tess_kernel *tess_prepared_kernel(const tess_prepared *prepared)
{
    return prepared->kernel;
}

tess_status tess_kernel_query(tess_device *device, const tess_op *op, tess_op_needs *needs, tess_error *error)
{
    const tess_kernel *kernel;
    *needs = (tess_op_needs){.block = 1};
    TESS_TRY(tess_kernel_choose(device, op, &kernel, error));
    if (kernel->needs)
        kernel->needs(device, op, needs);
    return TESS_OK;
}

/* A library may reject a shape only when it makes its plan; then a later row of the list does the op. */
static tess_status prepare_next(tess_device *device, tess_prepared *prepared, tess_error *error)
{
    const tess_kernel *const *row = device->ops->kernels;
    while (*row && *row != prepared->kernel)
        row++;
    tess_status status = TESS_UNSUPPORTED;
    for (row += *row != NULL; *row && status == TESS_UNSUPPORTED; row++) {
        if ((*row)->refuses(device, &prepared->op, NULL) != TESS_OK)
            continue;
        prepared->kernel = *row;
        status = (*row)->prepare ? (*row)->prepare(device, &prepared->op, &prepared->state, error) : TESS_OK;
    }
    return status;
}

tess_status tess_kernel_prepare(tess_device *device, const tess_op *op, tess_prepared **out,
                                tess_error *error)
{
    *out = NULL;
    const tess_kernel *kernel;
    TESS_TRY(tess_kernel_choose(device, op, &kernel, error));
    tess_prepared *prepared = tess_small_alloc(1, sizeof *prepared);
    if (!prepared)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to prepare a layer");
    *prepared = (tess_prepared){.op = *op, .kernel = kernel};
    tess_status status = kernel->prepare ? kernel->prepare(device, op, &prepared->state, error) : TESS_OK;
    if (status == TESS_UNSUPPORTED)
        status = prepare_next(device, prepared, error);
    if (status != TESS_OK) {
        tess_small_free(prepared);
        return status;
    }
    *out = prepared;
    return TESS_OK;
}

void tess_kernel_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                      const float *values, void *packed)
{
    const tess_kernel *kernel;
    if (tess_kernel_choose(device, op, &kernel, NULL) == TESS_OK && kernel->pack)
        kernel->pack(device, op, param, first, count, values, packed);
}

void tess_kernel_run(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *buffers,
                     tess_stream *stream)
{
    prepared->kernel->run(device, &prepared->op, prepared->state, buffers, stream);
}

void tess_kernel_release(tess_device *device, tess_prepared *prepared)
{
    if (!prepared)
        return;
    if (prepared->kernel->release)
        prepared->kernel->release(device, prepared->state);
    tess_small_free(prepared);
}
