/* smooth.h: smooth interpolation of voids, what a generative model starts from and what it must beat.
 *
 * Every fill minimises an energy over the void pixels with the valid ones fixed: the sum of squared first differences
 * (membrane: Laplace's equation), of squared second differences (biharmonic: a thin plate), or plate + tension * membrane,
 * "splines in tension" (Smith and Wessel, Geophysics 55, 1990). Differences that would leave the raster are left out, so
 * that a void at the edge continues the slope (plate) or stays level (membrane). The blend chooses the tension of each
 * void from its width and from how rough the valid terrain around it is.
 *
 * The solver is conjugate gradients in fp64 with a multilevel preconditioner, on one thread; each sum has a fixed order, so
 * that a result depends on the window alone. */
#ifndef TESS_TENSOR_TERRAIN_SMOOTH_H
#define TESS_TENSOR_TERRAIN_SMOOTH_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum tess_smooth_kind {
    TESS_SMOOTH_MEMBRANE,
    TESS_SMOOTH_BIHARMONIC,
    TESS_SMOOTH_BLEND,
} tess_smooth_kind;

typedef struct tess_smooth_window {
    float *values;        /* h * w; flagged ones are replaced */
    const uint8_t *flags; /* h * w; not 0: void. A value that is not finite is void as well */
    int64_t h, w;
    void *scratch; /* tess_smooth_bytes, aligned to 64 */
} tess_smooth_window;

/* Size of `scratch`; SIZE_MAX when it cannot be expressed. */
size_t tess_smooth_bytes(int64_t h, int64_t w);
/* TESS_BAD_INPUT when no pixel is valid. Without a void nothing happens. */
tess_status tess_smooth_fill(const tess_smooth_window *window, tess_smooth_kind kind,
                             tess_error *error) TESS_MUST_CHECK;
/* The energy plate + tension * membrane with one tension, in 1 / pixel^2, for all voids; infinite: the membrane. */
tess_status tess_smooth_fill_tension(const tess_smooth_window *window, double tension,
                                     tess_error *error) TESS_MUST_CHECK;

#endif
