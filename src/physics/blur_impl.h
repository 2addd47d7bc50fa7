/* blur_impl.h: what a stack of blurs is made of: blur_create.c makes it, blur.c runs it. */
#ifndef TESS_PHYSICS_BLUR_IMPL_H
#define TESS_PHYSICS_BLUR_IMPL_H

#include "physics/blur.h"
#include "physics/kernels.h"

enum {
    BLUR_KERNEL_SPECTRUM,
    BLUR_KEEP_REAL, /* of the kernel's spectrum, whose other half is rounding */
    BLUR_FILTER,
    BLUR_TRANSFORM,
    BLUR_ADD, /* image to image */
    BLUR_COPY,
    BLUR_SQUARE,
    BLUR_KEEP_SQUARE, /* into S; then added to it */
    BLUR_ADD_SQUARE,
    BLUR_STEPS
};

typedef struct tess_blur {
    tess_operator op; /* first: a tess_operator * is a tess_blur * */
    tess_prepared *step[BLUR_STEPS];
    tess_block held; /* kernels, S, B */
    tess_kernels kernels;
    size_t power_at, data_at; /* S and B in `held` */
    size_t held_bytes;
    /* In scratch, whose beginning is workspace, all that `step` needs; the kernel's complex spectrum is in it too, while
     * nothing runs that needs so much. */
    size_t response_at, real_at, image_at;
} tess_blur;

extern const tess_operator_table tess_blur_table;

#endif
