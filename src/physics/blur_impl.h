/* blur_impl.h: what a stack of blurs is made of: blur_create.c makes it, blur.c runs it. */
#ifndef TESS_PHYSICS_BLUR_IMPL_H
#define TESS_PHYSICS_BLUR_IMPL_H

#include "physics/blur.h"

enum {
    BLUR_CLEAR,
    BLUR_PLACE, /* four of them: the quarters of a kernel, around the corners of the image */
    BLUR_KERNEL_SPECTRUM = BLUR_PLACE + 4,
    BLUR_TRANSFORM,
    BLUR_BACK,
    BLUR_MULTIPLY,
    BLUR_MULTIPLY_CONJUGATE,
    BLUR_ADD,
    BLUR_SQUARE,
    BLUR_KEEP_SQUARE, /* the real part, which is all there is, into S; then added to it */
    BLUR_ADD_SQUARE,
    BLUR_NORMAL, /* S X - B */
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
    /* In scratch, whose beginning is the spectrum of an image. */
    size_t product_at, response_at, workspace_at;
} tess_blur;

static inline int64_t tess_blur_kernel_floats(const tess_blur *b)
{
    return b->rows.length * b->columns.length;
}

extern const tess_operator_table tess_blur_table;

#endif
