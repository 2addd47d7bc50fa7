/* kernel.h: a kernel is one way in which a device does some ops, as a row of the device's list. The choice between rows is made
 * here, for all devices alike: the row that was measured to be the best for this class of op (`prefers`), else the first of the
 * list that does not refuse. */
#ifndef TESS_DEVICE_KERNEL_H
#define TESS_DEVICE_KERNEL_H

#include "device/device.h"

struct tess_kernel {
    const char *name;
    /* TESS_OK: it takes the op. TESS_UNSUPPORTED: it refuses, and `why` says so; without a text when the op is not of its kind.
     * Must not depend on the image's size where results depend on the kernel (the CPU), so that tiles repeat the whole. */
    tess_status (*refuses)(const tess_device *, const tess_op *, tess_error *why);
    /* Workspace, packed parameters, what a library will hold. NULL: nothing. */
    void (*needs)(tess_device *, const tess_op *, tess_op_needs *);
    /* Rows [first, first + count) of a parameter's first dimension, row-major fp32, into packed form. NULL: no parameters. */
    void (*pack)(tess_device *, const tess_op *, int param, int64_t first, int64_t count, const float *values,
                 void *packed);
    /* What the kernel keeps for one op, e.g. a library's plan. NULL: nothing. */
    tess_status (*prepare)(tess_device *, const tess_op *, void **state, tess_error *);
    /* Allocates nothing and does not wait. A device that can fail here keeps the error for the next sync. */
    void (*run)(tess_device *, const tess_op *, void *state, const tess_op_buffers *, tess_stream *);
    void (*release)(tess_device *, void *state);
};

/* For `refuses`: a reason, or none for an op of another kind. */
tess_status tess_kernel_refuse(tess_error *why, const char *reason) TESS_MUST_CHECK;

/* The row that does the op; TESS_UNSUPPORTED, with the last reason given, when none does. */
tess_status tess_kernel_choose(tess_device *device, const tess_op *op, const tess_kernel **out,
                               tess_error *error) TESS_MUST_CHECK;
/* The row of this name, when it takes the op; NULL otherwise. */
const tess_kernel *tess_kernel_named(const tess_device *device, const tess_op *op, const char *name);
/* The row that a prepared op was bound to. */
const tess_kernel *tess_prepared_kernel(const tess_prepared *prepared);

/* The ops of a device with a list of kernels: the entries of its table. */
tess_status tess_kernel_query(tess_device *device, const tess_op *op, tess_op_needs *needs,
                              tess_error *error) TESS_MUST_CHECK;
tess_status tess_kernel_prepare(tess_device *device, const tess_op *op, tess_prepared **out,
                                tess_error *error) TESS_MUST_CHECK;
void tess_kernel_pack(tess_device *device, const tess_op *op, int param, int64_t first, int64_t count,
                      const float *values, void *packed);
void tess_kernel_run(tess_device *device, const tess_prepared *prepared, const tess_op_buffers *buffers,
                     tess_stream *stream);
void tess_kernel_release(tess_device *device, tess_prepared *prepared);

#endif
