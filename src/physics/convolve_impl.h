/* convolve_impl.h: what a stack of convolutions is made of: convolve_create.c makes it, convolve.c runs it. */
#ifndef TESS_PHYSICS_CONVOLVE_IMPL_H
#define TESS_PHYSICS_CONVOLVE_IMPL_H

#include "physics/convolve.h"

enum {
    CONVOLVE_KERNEL_SPECTRUM,
    CONVOLVE_TRANSFORM, /* image to spectrum, and back */
    CONVOLVE_BACK,
    CONVOLVE_TIMES, /* a spectrum by the kernel's, and by its conjugate */
    CONVOLVE_TIMES_CONJUGATE,
    CONVOLVE_KEEP_WAVES, /* into a sum of spectra; then added to it */
    CONVOLVE_ADD_WAVES,
    CONVOLVE_CLEAR, /* an image */
    CONVOLVE_CROP,  /* the middle of an image, and its transpose */
    CONVOLVE_PAD,
    CONVOLVE_EDGE,                       /* four of them: the margins to zero */
    CONVOLVE_SQUARE = CONVOLVE_EDGE + 4, /* |H|^2 */
    CONVOLVE_KEEP_POWER,                 /* into S; then added to it */
    CONVOLVE_ADD_POWER,
    CONVOLVE_FILTER,
    CONVOLVE_LESS, /* an image less another */
    CONVOLVE_STEPS
};

typedef struct tess_convolve {
    tess_operator op; /* first: a tess_operator * is a tess_convolve * */
    tess_prepared *step[CONVOLVE_STEPS];
    tess_kernels kernels;
    tess_block held; /* kernels, S, and what was absorbed: B, or with margins A^T y */
    size_t power_at, data_at, held_bytes;
    int64_t middle;     /* floats from the image's first value to the first that is seen */
    int64_t edge_at[4]; /* and to that of each margin: above, below, left, right */
    bool margins;
    /* In scratch, behind the workspace: the kernel's spectrum; the image's, one blur's, the sum's; an image. */
    size_t response_at, waves_at[3], image_at;
} tess_convolve;

extern const tess_operator_table tess_convolve_circular, tess_convolve_margins;

#endif
