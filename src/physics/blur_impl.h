/* blur_impl.h: the members of a stack of blurs: blur_create.c creates it, blur.c runs it. */
#ifndef TESS_PHYSICS_BLUR_IMPL_H
#define TESS_PHYSICS_BLUR_IMPL_H

#include "physics/blur.h"
#include "physics/kernels.h"
#include "physics/waves.h"

enum {
    BLUR_KERNEL_SPECTRUM,
    BLUR_KEEP_REAL, /* of the kernel's spectrum, whose imaginary part is rounding error */
    BLUR_FILTER,    /* of ranks: only the product; they transform with `waves` and `kernel_waves` */
    BLUR_TRANSFORM,
    BLUR_ADD, /* image to image */
    BLUR_COPY,
    BLUR_SQUARE,
    BLUR_KEEP_SQUARE, /* store in S; then add to S */
    BLUR_ADD_SQUARE,
    BLUR_STEPS
};

typedef struct tess_blur {
    tess_operator op; /* first: a tess_operator * is a tess_blur * */
    tess_prepared *step[BLUR_STEPS];
    tess_block held; /* kernels, S, B */
    tess_kernels kernels;
    tess_waves waves, kernel_waves; /* only if ranks share the image */
    size_t power_at, data_at;       /* S and B in `held` */
    size_t held_bytes;
    /* Offsets in scratch, which begins with the workspace; `step` needs only the workspace. The kernel's complex
     * spectrum shares the workspace when no op needs that much. */
    size_t response_at, real_at, image_at;
} tess_blur;

extern const tess_operator_table tess_blur_table;

#endif
