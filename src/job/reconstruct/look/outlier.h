/* outlier.h: whether a value of a blurred picture stands out by more than its kernel lets any light do. The sharpest thing that
 * a blur can show is the image of a point, which is the kernel: next to its brightest pixel are other bright ones. A value far
 * above or below all that surround it was made by the camera: a hot or dead pixel, or a cosmic ray. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_OUTLIER_H
#define TESS_JOB_RECONSTRUCT_LOOK_OUTLIER_H

#include "job/reconstruct/look/sampled_kernel.h"

/* Rows and columns on each side that are looked at. */
enum { TESS_OUTLIER_REACH = 2, TESS_OUTLIER_SIDE = 2 * TESS_OUTLIER_REACH + 1 };

/* Of values without their slope: one is an outlier if it exceeds the largest of the 8 around it by `alone` times the span of the 24 around it, or the third
 * largest of the 8 by `group` times their span without the two values at each end, so that up to three may be side by side.
 * Infinite: this cannot be told for the kernel. */
typedef struct tess_outlier_limits {
    double alone, group;
    double excess; /* less is not looked at */
    double span;   /* a smaller one counts as this: what chance may hide */
} tess_outlier_limits;

/* Sets `alone` and `group`. */
tess_outlier_limits tess_outlier_limits_of(const tess_sampled_kernel *kernel);
/* Of the value in the middle of a window; *fill is the median of the 8 around it. */
bool tess_is_outlier(const tess_outlier_limits *limits,
                     const float raw[TESS_OUTLIER_SIDE * TESS_OUTLIER_SIDE], float *fill);

#endif
