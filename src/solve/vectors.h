/* vectors.h: sums and inner products of images or measurements in a device's memory, with its COMBINE and DOT ops.
 * All vectors of one tess_vectors have the same dense fp32 shape. If ranks share them, each has a part: sums are then made
 * of the parts, and products, which are collective, are added up over the ranks. */
#ifndef TESS_SOLVE_VECTORS_H
#define TESS_SOLVE_VECTORS_H

#include "device/device.h"
#include "dist/share.h"

typedef struct tess_vectors {
    tess_device *device;
    tess_tensor shape;
    void *scratch; /* owned by the caller; tess_vectors_scratch bytes */
    tess_prepared *dot;
    tess_share *share; /* NULL: alone */
} tess_vectors;

/* clamp(a x + b y + c z); y and z may be NULL. No clamp if high <= low. */
typedef struct tess_sum {
    double a;
    const void *x;
    double b;
    const void *y;
    double c;
    const void *z;
    double low, high;
} tess_sum;

size_t tess_vector_bytes(const tess_tensor *shape);
tess_status tess_vectors_scratch(tess_device *device, const tess_tensor *shape, size_t *bytes,
                                 tess_error *error) TESS_MUST_CHECK;
/* Close it also if this fails. */
tess_status tess_vectors_open(tess_vectors *vectors, tess_device *device, const tess_tensor *shape,
                              tess_share *share, void *scratch, tess_error *error) TESS_MUST_CHECK;
void tess_vectors_close(tess_vectors *vectors);

/* `out` may be any of the sum's vectors. */
tess_status tess_vectors_sum(const tess_vectors *vectors, const tess_sum *sum, void *out,
                             tess_error *error) TESS_MUST_CHECK;
tess_status tess_vectors_dot(const tess_vectors *vectors, const void *x, const void *y, double *dot,
                             tess_error *error) TESS_MUST_CHECK;

#endif
