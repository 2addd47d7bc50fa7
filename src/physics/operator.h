/* operator.h: a linear operator A between an image and its measurement, on a device. What a solver may ask of it:
 * forward, the exact transpose, an approximate inverse, and steps towards the minimum of 1/2 |A x - y|^2, which some
 * operators know a shortcut for. Data lies in the device's memory, dense fp32; nothing is allocated once an operator is made:
 * scratch comes from the caller, as much as `scratch_bytes` says. */
#ifndef TESS_PHYSICS_OPERATOR_H
#define TESS_PHYSICS_OPERATOR_H

#include "device/device.h"

typedef struct tess_operator tess_operator; /* owned by the caller: tess_operator_destroy */

/* ((a + b N) x + c A^T y) / (d + e N), N = A^T A: the gradient at x is {0, 1, -1, 1, 0}, N x {0, 1, 0, 1, 0}, a step of
 * length s down the gradient {1, -s, s, 1, 0}, the minimum of 1/2 |A z - y|^2 + w/2 |z - x|^2 {w, 0, 1, w, 1}. */
typedef struct tess_normal_step {
    double a, b, c, d, e;
} tess_normal_step;

typedef struct tess_operator_table {
    void (*destroy)(tess_operator *);
    void (*forward)(tess_operator *, const void *image, void *measurement, void *scratch, tess_stream *);
    void (*adjoint)(tess_operator *, const void *measurement, void *image, void *scratch, tess_stream *);
    /* NULL when there is none (FBP, FDK). */
    void (*inverse)(tess_operator *, const void *measurement, void *image, void *scratch, tess_stream *);
    /* Takes the measurement in, once; after that the caller may drop it, and `step` or `normal` does all that a solver
     * needs. NULL: forward, difference, adjoint. */
    void (*absorb)(tess_operator *, const void *measurement, void *scratch, tess_stream *);
    /* For an operator that absorbs the measurement but has no `step`, since no basis makes N diagonal: N image, less
     * A^T y of what was absorbed where `less` is set; not `image` itself. */
    void (*normal)(tess_operator *, bool less, const void *image, void *out, void *scratch, tess_stream *);
    /* About (N + shift I)^-1 `in`, symmetric and positive, for conjugate gradients; NULL: none. Not `in` itself. */
    void (*precondition)(tess_operator *, double shift, const void *in, void *out, void *scratch,
                         tess_stream *);
    /* Kernel i of a stack of blurs, in the device's memory, for those who weigh measurements before they are absorbed; NULL:
     * the operator has none. */
    float *(*kernel)(tess_operator *, int64_t i, int64_t *floats);
    /* `out` may be `image`. */
    void (*step)(tess_operator *, const tess_normal_step *, const void *image, void *out, void *scratch,
                 tess_stream *);
} tess_operator_table;

struct tess_operator {
    const tess_operator_table *table;
    tess_device *device;
    const char *name; /* "blur", "radon", "cone" */
    tess_tensor image, measurement;
    size_t scratch_bytes;                /* the most that any of the functions needs */
    size_t step_scratch_bytes;           /* what `step` needs of it */
    size_t held_bytes;                   /* device memory that the operator itself holds: tables, spectra */
    size_t making_bytes;                 /* of the host, while it is made; 0: nothing worth counting */
    double forward_flops, forward_bytes; /* cost of one forward or adjoint, for plans */
    double norm_squared;                 /* of A, when it is known; else 0: the power method */
};

/* What a sample of a ray counts as, for plans. It is gathered, not multiplied: where a device's rates are those of
 * convolutions, this many flops and bytes take as long. Fitted to rays_rates on an H200 and on a Neoverse-V1. */
enum { TESS_SAMPLE_FLOPS = 400, TESS_SAMPLE_BYTES = 8 };

void tess_operator_destroy(tess_operator *op);

#endif
