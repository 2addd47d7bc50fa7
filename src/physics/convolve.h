/* convolve.h: a stack of blurs with any kernels, of an image that is measured whole or in part.
 *
 * If the whole image is measured, the blur is circular: A_i x = irfft2(rfft2(x) H_i), and the steps are those of
 * blur.h, with S = sum |H_i|^2 and B = sum conj(H_i) rfft2(y_i).
 *
 * With margins, A_i x is the middle of that: a camera sees H x W pixels of a larger scene, and near the edge light
 * enters from outside. The image therefore covers everything that can reach the sensor, the measurement is its
 * middle, and the pixels of the margins are unknowns like all others (Almeida & Figueiredo, "Deconvolving images with
 * unknown boundaries using ADMM", TIP 2013). Because of the mask, N = sum A_i^T A_i is no longer diagonal after an
 * FFT: `normal` computes N x, and `precondition` is the inverse of the circular N + shift, which differs from the
 * true one only near the margins, so that few steps of conjugate gradients suffice.
 *
 * Values inside the picture that say nothing about it (missing, cut off, hidden by a frame) are left out in the same way: a blur may
 * have a mask W_i of zeros and ones, and A_i x is W_i times the middle. Values between are weights of the data term: N and the absorbed data
 * have W_i once.
 *
 * Ranks that share the image have a strip of its rows, margins included, the measured rows among these. They blur in one of two
 * ways: each has some columns of all spectra (waves.h), for which images are transposed twice for each blur; or, with `halo`, each
 * transforms its strip alone, with as many rows of its neighbours as the kernels reach (overlap.h). The preconditioner divides by the
 * spectrum of the whole image, so it has columns of that in both ways. */
#ifndef TESS_PHYSICS_CONVOLVE_H
#define TESS_PHYSICS_CONVOLVE_H

#include "physics/kernels.h"
#include "physics/operator.h"

typedef struct tess_convolve_settings {
    int64_t height, width, channels;     /* of the image, margins included */
    int64_t margin_rows, margin_columns; /* at the top and on the left */
    /* of the measured part inside the margins; 0: all, and the blur is circular */
    int64_t seen_height, seen_width;
    int64_t count;
    const tess_blur_kernel *kernels; /* not needed after the operator is created */
    tess_share *share;               /* of the image's rows; NULL: alone; must outlive the operator */
    const bool *masked; /* of each blur: whether it has a mask, for which it needs margins; NULL: none has */
    bool halo;          /* how ranks blur; alone it does not matter. Needs tess_convolve_can_halo */
} tess_convolve_settings;

/* Whether ranks may blur strips with the rows of their neighbours: the image has margins, and no kernel is folded. */
bool tess_convolve_can_halo(const tess_convolve_settings *settings);

/* Returns a side for `seen` pixels with at least `reach` around them whose prime factors are small, so that its FFT
 * is fast. */
int64_t tess_convolve_side(int64_t seen, int64_t reach);
/* Computes the operator's sizes and costs only; creates nothing that would have to be destroyed. */
tess_status tess_convolve_sketch(tess_device *device, const tess_convolve_settings *settings,
                                 tess_operator *out, tess_error *error) TESS_MUST_CHECK;
/* Measurement: (count, 1, seen_height, seen_width, channels). The masks must be set before the operator is used. */
tess_status tess_convolve_create(tess_device *device, const tess_convolve_settings *settings,
                                 tess_operator **out, tess_error *error) TESS_MUST_CHECK;

#endif
