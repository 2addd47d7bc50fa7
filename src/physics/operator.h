/* operator.h: a linear operator A between an image and its measurement, on a device. It offers solvers forward, the
 * exact transpose, an approximate inverse, and steps towards the minimum of 1/2 |A x - y|^2, for which some operators
 * have a shortcut. Data is dense fp32 in the device's memory. Nothing is allocated after an operator is created:
 * scratch of `scratch_bytes` comes from the caller. */
#ifndef TESS_PHYSICS_OPERATOR_H
#define TESS_PHYSICS_OPERATOR_H

#include "device/device.h"
#include "dist/share.h"

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
    /* NULL if there is none (FBP, FDK). */
    void (*inverse)(tess_operator *, const void *measurement, void *image, void *scratch, tess_stream *);
    /* Takes in the measurement, once; after that the caller may release it, and `step` or `normal` does everything
     * that a solver needs. NULL: use forward, difference, adjoint. */
    void (*absorb)(tess_operator *, const void *measurement, void *scratch, tess_stream *);
    /* For an operator that absorbs the measurement but has no `step`, because no basis makes N diagonal: computes N
     * image, minus the absorbed A^T y if `less` is set. `out` must not be `image`. */
    void (*normal)(tess_operator *, bool less, const void *image, void *out, void *scratch, tess_stream *);
    /* Approximates (N + shift I)^-1 `in`, symmetric and positive, for conjugate gradients; NULL: none. `out` must not
     * be `in`. */
    void (*precondition)(tess_operator *, double shift, const void *in, void *out, void *scratch,
                         tess_stream *);
    /* Kernel i of a stack of blurs, in the device's memory, so that measurements can be weighted before they are
     * absorbed; NULL: the operator has no kernels. */
    float *(*kernel)(tess_operator *, int64_t i, int64_t *floats);
    /* The mask of blur i in the device's memory, a factor for each of its values, which the caller sets; NULL: it has
     * none. Without this function no blur has one. */
    float *(*mask)(tess_operator *, int64_t i);
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
    size_t step_scratch_bytes;           /* the part that `step` needs */
    size_t held_bytes;                   /* device memory held by the operator: tables, spectra */
    size_t making_bytes;                 /* host memory while it is created; 0: negligible */
    double forward_flops, forward_bytes; /* cost of one forward or adjoint, for plans */
    double norm_squared;                 /* of A if it is known; 0: use the power method */
    /* NULL: alone. Else `image` and `measurement` are this rank's parts, and the functions above are collective: what they
     * cannot report is kept there. */
    tess_share *share;
    int64_t image_first; /* values of the whole image before this rank's part */
    tess_operator
        *inner; /* the operator that does the work of this one, and has its settings; owned; NULL: itself */
};

/* Cost of one sample of a ray, for plans. It is gathered, not multiplied: on a device whose rates are those of
 * convolutions, this many flops and bytes take as long. Fitted to rays_rates on an H200 and on a Neoverse-V1. */
enum { TESS_SAMPLE_FLOPS = 400, TESS_SAMPLE_BYTES = 8 };

void tess_operator_destroy(tess_operator *op);

#endif
