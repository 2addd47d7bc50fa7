/* blur_impl.h: what a stack of blurs is made of: blur_create.c makes it, blur.c runs it. */
#ifndef TESS_PHYSICS_BLUR_IMPL_H
#define TESS_PHYSICS_BLUR_IMPL_H

#include "physics/blur.h"

enum {
    BLUR_CLEAR,
    BLUR_PLACE, /* four of them: the quarters of a kernel, around the corners of the image */
    BLUR_KERNEL_SPECTRUM = BLUR_PLACE + 4,
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

typedef struct tess_blur_piece {
    int64_t from, to; /* in floats, of the kernel and of the image */
} tess_blur_piece;

/* One side of a kernel on a side of the image: a kernel wider than that is folded, as the circle has it. */
typedef struct tess_blur_side {
    int64_t image, reach;
    int64_t length; /* of the kernel as it is held */
    int64_t origin; /* where its centre is */
} tess_blur_side;

typedef struct tess_blur {
    tess_operator op; /* first: a tess_operator * is a tess_blur * */
    tess_prepared *step[BLUR_STEPS];
    tess_block held; /* kernels, S, B */
    tess_blur_side rows, columns;
    tess_blur_piece pieces[4];
    size_t power_at, data_at; /* S and B in `held` */
    /* In scratch, whose beginning is workspace, all that `step` needs; the kernel's complex spectrum is in it too, while
     * nothing runs that needs so much. */
    size_t response_at, real_at, image_at;
} tess_blur;

static inline int64_t tess_blur_kernel_floats(const tess_blur *b)
{
    return b->rows.length * b->columns.length;
}

extern const tess_operator_table tess_blur_table;

#endif
