/* blur.h: a stack of circular Gaussian blurs of one image: A_i x = irfft2(rfft2(x) H_i), where H_i is the transform
 * of kernel i around pixel (0, 0).
 *
 * Gaussian kernels are symmetric, so every H_i is real, and the steps of a solver are filters: with S = sum H_i^2 and
 * B = sum H_i rfft2(y_i) the gradient of 1/2 sum |A_i x - y_i|^2 is irfft2(S rfft2(x) - B), a step down it is
 * irfft2((1 - s S) rfft2(x) + s B), and so on (see tess_normal_step). `absorb` computes S and B once. After that a
 * step costs one transform and one inverse per channel for any number of blurs, and the measurements may be released.
 * Only S, B and the small kernels are held; forward, adjoint and absorb compute the spectrum of a single kernel
 * again. `step` must not be called before `absorb`.
 *
 * Ranks that share the image have a strip of its rows and of each measurement, and some columns of all spectra (waves.h). */
#ifndef TESS_PHYSICS_BLUR_H
#define TESS_PHYSICS_BLUR_H

#include "physics/operator.h"

typedef struct tess_blur_settings {
    int64_t height, width, channels;
    int64_t count;
    const double *angles;             /* degrees */
    double sigma_rows, sigma_columns; /* at angle 0: along the height, along the width */
    tess_share *share;                /* NULL: alone; must outlive the operator */
} tess_blur_settings;

/* Computes the operator's sizes and costs only; creates nothing that would have to be destroyed. */
tess_status tess_blur_sketch(tess_device *device, const tess_blur_settings *settings, tess_operator *out,
                             tess_error *error) TESS_MUST_CHECK;
/* Measurement: (count, 1, height, width, channels). */
tess_status tess_blur_create(tess_device *device, const tess_blur_settings *settings, tess_operator **out,
                             tess_error *error) TESS_MUST_CHECK;

#endif
