/* kernel.h: a kernel is one way in which a device does some ops; it is a row of the device's list. This file
 * selects the row for all devices: the row that was measured to be the fastest for this class of op
 * (`prefers`), else the first of the list that does not refuse. */
#ifndef TESS_DEVICE_KERNEL_H
#define TESS_DEVICE_KERNEL_H

#include "device/device.h"

struct tess_kernel {
    const char *name;
    /* TESS_OK: the row accepts the op. TESS_UNSUPPORTED: it refuses, with the reason in `why`, or without one
     * if the op is of another kind. The answer must not depend on the image size on devices where results
     * depend on the kernel (the CPU), so that tiles give the same result as the whole. */
    tess_status (*refuses)(const tess_device *, const tess_op *, tess_error *why);
    /* Sets workspace, packed parameters, and memory held by a library. NULL: none. */
    void (*needs)(tess_device *, const tess_op *, tess_op_needs *);
    /* Packs rows [first, first + count) of a parameter's first dimension, given as row-major fp32. NULL: no
     * parameters. */
    void (*pack)(tess_device *, const tess_op *, int param, int64_t first, int64_t count, const float *values,
                 void *packed);
    /* Creates the state that the kernel keeps for one op, e.g. a library's plan. NULL: none. */
    tess_status (*prepare)(tess_device *, const tess_op *, void **state, tess_error *);
    /* Must not allocate or wait. A device that can fail here stores the error for the next sync. */
    void (*run)(tess_device *, const tess_op *, void *state, const tess_op_buffers *, tess_stream *);
    void (*release)(tess_device *, void *state);
};

/* Result of `refuses`: with a reason, or NULL for an op of another kind. */
tess_status tess_kernel_refuse(tess_error *why, const char *reason) TESS_MUST_CHECK;

/* Selects the row that does the op. Returns TESS_UNSUPPORTED, with the last reason given, if there is none. */
tess_status tess_kernel_choose(tess_device *device, const tess_op *op, const tess_kernel **out,
                               tess_error *error) TESS_MUST_CHECK;
/* The row of this name if it accepts the op, else NULL. */
const tess_kernel *tess_kernel_named(const tess_device *device, const tess_op *op, const char *name);
/* The row that the op was prepared for. */
const tess_kernel *tess_prepared_kernel(const tess_prepared *prepared);
const tess_op *tess_prepared_op(const tess_prepared *prepared);

/* The entries of tess_device_ops for a device with a list of kernels. */
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
