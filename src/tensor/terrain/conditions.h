/* conditions.h: what a diffusion model of ours sees of a window with voids, and what its result means. Filling and training
 * share it.
 *
 * The voids are filled smoothly to x_s (smooth.h, BLEND). The network works on y = (x - x_s) / (2 scale), clamped to [-1, 1]: what
 * the smooth fill misses, in units of what it is expected to miss (relief.h). So narrow voids, where interpolation is hard to
 * beat, start from it. The channels beside y:
 *
 *   0  x_s, scaled so that the valid pixels span [-1, 1]; clamped to [-2, 2]
 *   1  x_s minus a Gaussian mean of it, over the scale, clamped to [-2, 2]: the texture that y continues. The Gaussian's
 *      deviation is an eighth of the widest void, 2 to 16 pixels, so that texture and y have the same size in any void
 *   2  -1 at valid pixels; in voids the distance to the nearest valid pixel over half the width of the widest void, at most 1
 *
 * A guess, the result of a coarser map, replaces the smooth fill in the middle of voids that are too wide for it: half of it
 * at a quarter of the window's side from valid pixels. Everything is independent of the unit of height. */
#ifndef TESS_TENSOR_TERRAIN_CONDITIONS_H
#define TESS_TENSOR_TERRAIN_CONDITIONS_H

#include "base/status.h"
#include "tensor/terrain/relief.h"

enum { TESS_CONDITIONS = 3 }; /* channels, without y */

/* Noise levels gamma at which such a model is trained: those that samplers visit. y is 0.2 in the mean, so that below the first not
 * even its mean over a wide void can be seen, and beyond the last it is known to 1 % of its range. */
#define TESS_CONDITIONS_GAMMA_LEAST 4.386e-5
#define TESS_CONDITIONS_GAMMA_MOST  0.9999

/* How many pixels of the map a guess has for one. */
enum { TESS_CONDITIONS_COARSE = 4 };

/* What a smooth fill of level terrain misses at the least: a centimetre, or a hundredth of a map's whole span if that is less
 * than 1. */
#define TESS_CONDITIONS_LEAST 0.01

typedef struct tess_conditions_window {
    const float *values;  /* h * w; void ones are not read */
    const uint8_t *flags; /* not 0: void */
    const float *guess;   /* h * w, or NULL */
    int64_t h, w;
    void *scratch; /* tess_conditions_bytes, aligned to 64 */
    double least;  /* lower limit of half the scale; 0: TESS_CONDITIONS_LEAST */
} tess_conditions_window;

typedef struct tess_conditions {
    float *smooth;   /* h * w: x_s; the heights at valid pixels */
    float *channels; /* h * w * TESS_CONDITIONS, interleaved */
    double scale;    /* heights of y = 1 */
} tess_conditions;

size_t tess_conditions_bytes(int64_t h, int64_t w);
/* Fills what `out` points to. A window without a valid pixel and without a guess becomes level. */
tess_status tess_conditions_make(const tess_conditions_window *window, tess_conditions *out,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
