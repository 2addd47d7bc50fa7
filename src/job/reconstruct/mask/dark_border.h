/* dark_border.h: whether blurs were made with zeros outside of the picture, as by a convolution that keeps the size. Their border is as dark
 * as the part of the kernel that lies outside makes it. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_DARK_BORDER_H
#define TESS_JOB_RECONSTRUCT_MASK_DARK_BORDER_H

#include "job/reconstruct/look/sampled_kernel.h"

enum { TESS_BORDER_SIDES = 4, TESS_BORDER_LINES = 3 };

/* Initialize with {.problem = ...}; close it. */
typedef struct tess_dark_border {
    const tess_problem *problem;
    float *lines[TESS_BORDER_SIDES]
                [TESS_BORDER_LINES]; /* light along a side, at three distances from it; the first is owned */
    float *ratios;                   /* scratch; owned with the lines */
    int64_t reach[2];                /* of the blur's kernel, in rows and columns */
    double inside[TESS_BORDER_SIDES][TESS_BORDER_LINES]; /* its part that sees the picture from there */
    double largest;                                      /* light of the blur */
    int64_t dark;                                        /* blurs that have such a border */
} tess_dark_border;

/* Close it also if this fails. */
tess_status tess_dark_border_open(tess_dark_border *border, tess_error *error) TESS_MUST_CHECK;
/* Each row of the file, in order. */
tess_status tess_dark_border_add(tess_dark_border *border, int64_t y, const float *values,
                                 tess_error *error) TESS_MUST_CHECK;
/* Whether all blurs have one. */
bool tess_dark_border_found(const tess_dark_border *border);
void tess_dark_border_close(tess_dark_border *border);

#endif
