/* relief.h: how heights of a window become what a diffusion model sees, and back. Filling and training share it.
 *
 * MINMAX (as published by Diff-DEM): the valid heights' range becomes [-1, 1]; heights beyond it cannot be expressed.
 * SMOOTH: the smooth fill of the window (smooth.h) is subtracted and the rest divided by a scale, so that a model works on
 * what interpolation misses: 0 is the smooth fill, and valid pixels are exactly 0. The scale is what the smooth fill is
 * expected to miss, from the roughness of the valid terrain around the voids at a distance that goes with their width; 2
 * scales and more are clamped.
 * A window that is level, or has too few valid pixels to tell, gets the scale `least`. */
#ifndef TESS_TENSOR_TERRAIN_RELIEF_H
#define TESS_TENSOR_TERRAIN_RELIEF_H

#include <stddef.h>
#include <stdint.h>

typedef enum tess_relief_kind { TESS_RELIEF_MINMAX, TESS_RELIEF_SMOOTH } tess_relief_kind;

typedef struct tess_relief {
    tess_relief_kind kind;
    double centre; /* MINMAX: the middle of the range; SMOOTH: 0 */
    double scale;  /* heights of 1 */
    double width;  /* of the widest void; 0 for MINMAX */
} tess_relief;

typedef struct tess_relief_window {
    const float *values;  /* h * w; void ones are not read */
    const uint8_t *flags; /* not 0: void */
    const float *smooth;  /* h * w, the smooth fill: for SMOOTH, else NULL */
    int64_t h, w;
    double least;  /* lower limit of the scale, in units of height; 0.01 is usual */
    void *scratch; /* tess_relief_bytes: for SMOOTH */
} tess_relief_window;

size_t tess_relief_bytes(int64_t h, int64_t w);
void tess_relief_fit(const tess_relief_window *window, tess_relief_kind kind, tess_relief *relief);
/* out[i] = (values[i] - centre or smooth[i]) / scale, clamped to [-1, 1] or [-2, 2]; 0 where the flag is set, unless `flags`
 * is NULL. */
void tess_relief_apply(const tess_relief *relief, const float *values, const uint8_t *flags,
                       const float *smooth, int64_t count, float *out);
/* The inverse. */
void tess_relief_restore(const tess_relief *relief, const float *in, const float *smooth, int64_t count,
                         float *values);

#endif
