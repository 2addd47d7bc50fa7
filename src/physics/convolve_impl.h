/* convolve_impl.h: the members of a stack of convolutions: convolve_create.c creates it, convolve.c runs it. */
#ifndef TESS_PHYSICS_CONVOLVE_IMPL_H
#define TESS_PHYSICS_CONVOLVE_IMPL_H

#include "physics/convolve.h"
#include "physics/waves.h"

enum {
    CONVOLVE_KERNEL_SPECTRUM,
    CONVOLVE_TRANSFORM, /* image to spectrum, and back; ranks use `waves` and `kernel_waves` */
    CONVOLVE_BACK,
    CONVOLVE_TIMES, /* multiply a spectrum by the kernel's, and by its conjugate */
    CONVOLVE_TIMES_CONJUGATE,
    CONVOLVE_KEEP_WAVES, /* store in a sum of spectra; then add to it */
    CONVOLVE_ADD_WAVES,
    CONVOLVE_CLEAR, /* clears an image */
    CONVOLVE_CROP,  /* the middle of an image, and its transpose */
    CONVOLVE_PAD,
    CONVOLVE_EDGE,                       /* four ops: clear the margins */
    CONVOLVE_SQUARE = CONVOLVE_EDGE + 4, /* |H|^2 */
    CONVOLVE_KEEP_POWER,                 /* store in S; then add to S */
    CONVOLVE_ADD_POWER,
    CONVOLVE_FILTER, /* of ranks: only the product */
    CONVOLVE_LESS,   /* subtracts an image from another */
    CONVOLVE_STEPS
};

typedef struct tess_convolve {
    tess_operator op; /* first: a tess_operator * is a tess_convolve * */
    tess_prepared *step[CONVOLVE_STEPS];
    tess_kernels kernels;
    tess_block held; /* kernels, S, and the absorbed data: B, or with margins A^T y */
    size_t power_at, data_at, held_bytes;
    int64_t margin_rows; /* above the measured rows of the strip */
    int64_t middle;      /* floats from the image's first value to the first measured one */
    int64_t edge_at[4];  /* the same for each margin: top, bottom, left, right */
    bool margins;
    tess_waves waves, kernel_waves; /* only if ranks share the image */
    /* Offsets in scratch: the workspace; spectrum of the kernel; of the image, of one blur and of the sum; an image. Ranks
     * have the scratch of their transforms before the workspace, and the spectrum of one blur is in it. */
    size_t workspace_at, response_at, waves_at[3], image_at;
} tess_convolve;

extern const tess_operator_table tess_convolve_circular, tess_convolve_margins;

#endif
