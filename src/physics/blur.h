/* blur.h: a stack of Gaussian blurs of one image, circular: A_i x = irfft2(rfft2(x) H_i), H_i being the transform of
 * kernel i around pixel (0, 0).
 *
 * Gaussian kernels look the same from both sides, so every H_i is real, and what solvers ask for is a filter: with S =
 * sum H_i^2 and B = sum H_i rfft2(y_i) the gradient of 1/2 sum |A_i x - y_i|^2 is irfft2(S rfft2(x) - B), a step down it
 * irfft2((1 - s S) rfft2(x) + s B), and so on (see tess_normal_step). `absorb` makes S and B, once, and from then on a
 * step costs one transform and one inverse a channel, however many blurs there are, and the measurements may be
 * dropped. Only S, B and the small kernels are held; the spectrum of a single kernel is made again where forward,
 * adjoint and absorb need it. `step` before `absorb` has no meaning. */
#ifndef TESS_PHYSICS_BLUR_H
#define TESS_PHYSICS_BLUR_H

#include "physics/operator.h"

typedef struct tess_blur_settings {
    int64_t height, width, channels;
    int64_t count;
    const double *angles;             /* degrees */
    double sigma_rows, sigma_columns; /* at angle 0: along the height, along the width */
} tess_blur_settings;

/* The operator's sizes and costs, without what it needs to run; nothing is made that would have to be destroyed. */
tess_status tess_blur_sketch(tess_device *device, const tess_blur_settings *settings, tess_operator *out,
                             tess_error *error) TESS_MUST_CHECK;
/* Measurement: (count, 1, height, width, channels). */
tess_status tess_blur_create(tess_device *device, const tess_blur_settings *settings, tess_operator **out,
                             tess_error *error) TESS_MUST_CHECK;

#endif
