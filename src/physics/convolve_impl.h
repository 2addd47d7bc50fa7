/* convolve_impl.h: the members of a stack of convolutions: convolve_create.c creates it, convolve.c runs it. */
#ifndef TESS_PHYSICS_CONVOLVE_IMPL_H
#define TESS_PHYSICS_CONVOLVE_IMPL_H

#include "physics/convolve.h"
#include "physics/overlap.h"
#include "physics/waves.h"

enum {
    CONVOLVE_KERNEL_SPECTRUM,
    CONVOLVE_TRANSFORM, /* image to spectrum, and back; without halos ranks use `waves` and `kernel_waves` */
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
    CONVOLVE_MASK,   /* multiplies the middle of an image by a mask */
    CONVOLVE_STEPS
};

typedef struct tess_convolve {
    tess_operator op; /* first: a tess_operator * is a tess_convolve * */
    tess_prepared *step[CONVOLVE_STEPS];
    tess_kernels kernels;
    tess_block held; /* kernels, S, the absorbed data: B, or with margins A^T y; and the masks */
    size_t power_at, data_at, masks_at, mask_bytes, held_bytes;
    bool *masked;        /* of each blur; owned; NULL: none has a mask */
    int64_t margin_rows; /* above the measured rows of the strip */
    int64_t middle;      /* floats from the image's first value to the first measured one */
    int64_t edge_at[4];  /* the same for each margin: top, bottom, left, right */
    bool margins;
    tess_waves waves, kernel_waves; /* only if ranks share the image */
    bool halo;                      /* they blur strips with the rows of their neighbours */
    tess_overlap overlap;           /* these; `kernels` are placed in an image of so many rows */
    tess_kernels whole_kernels;     /* the same kernels in the whole image, for S */
    /* Offsets in scratch: the workspace; spectrum of the kernel; of the image, of one blur and of the sum; an image. Ranks
     * have the scratch of their transforms before the workspace, and the spectrum of one blur is in it; with halos, they have
     * their rows there. */
    size_t workspace_at, response_at, waves_at[3], image_at;
    /* The same for S and the preconditioner, which need the whole spectrum also where the blurs do not: then another use of the
     * scratch, otherwise as above. */
    struct {
        size_t workspace_at, response_at, image_at;
    } whole;
} tess_convolve;

/* Describes all ops; an empty part of an image has none. */
void tess_convolve_describe(tess_convolve *convolve, const tess_convolve_settings *settings,
                            tess_op ops[CONVOLVE_STEPS]);

extern const tess_operator_table tess_convolve_circular, tess_convolve_margins;

#endif
