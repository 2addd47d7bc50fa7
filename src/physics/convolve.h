/* convolve.h: a stack of blurs by any kernels, of an image that is seen whole or in part.
 *
 * Seen whole, the blur is circular: A_i x = irfft2(rfft2(x) H_i), and everything that blur.h says of steps holds, with
 * S = sum |H_i|^2 and B = sum conj(H_i) rfft2(y_i).
 *
 * With margins, A_i x is the middle of that: a camera sees H x W pixels of a scene that goes on, and near the edge the
 * blur brings in light from outside. The image is therefore as large as all that can reach the sensor, the measurement
 * is its middle, and the pixels of the margins are unknowns like all others (Almeida & Figueiredo, "Deconvolving images
 * with unknown boundaries using ADMM", TIP 2013). The mask between the two makes N = sum A_i^T A_i no longer diagonal
 * after an FFT: `normal` computes N x, and `precondition` is the inverse of the circular N + shift, which differs from
 * the true one near the margins alone, so that few steps of conjugate gradients do. */
#ifndef TESS_PHYSICS_CONVOLVE_H
#define TESS_PHYSICS_CONVOLVE_H

#include "physics/kernels.h"
#include "physics/operator.h"

typedef struct tess_convolve_settings {
    int64_t height, width, channels;     /* of the image, margins included */
    int64_t margin_rows, margin_columns; /* above and on the left */
    int64_t seen_height, seen_width;     /* behind them; 0: all, and the blur is circular */
    int64_t count;
    const tess_blur_kernel *kernels; /* not needed once the operator is made */
} tess_convolve_settings;

/* Of a side of `seen` pixels with at least `reach` around them, one whose factors are small, so that its FFT is fast. */
int64_t tess_convolve_side(int64_t seen, int64_t reach);
/* The operator's sizes and costs, without what it needs to run; nothing is made that would have to be destroyed. */
tess_status tess_convolve_sketch(tess_device *device, const tess_convolve_settings *settings,
                                 tess_operator *out, tess_error *error) TESS_MUST_CHECK;
/* Measurement: (count, 1, seen_height, seen_width, channels). */
tess_status tess_convolve_create(tess_device *device, const tess_convolve_settings *settings,
                                 tess_operator **out, tess_error *error) TESS_MUST_CHECK;

#endif
