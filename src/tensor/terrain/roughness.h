/* roughness.h: how rough the valid terrain of a window is at a distance of pixels: the mean square of the second
 * differences x[-lag] - 2 x[0] + x[lag] along rows and columns. It grows as lag^(2 s); s is about 1.3 on smooth slopes, 1
 * on most terrain, and 0.5 and less among buildings. */
#ifndef TESS_TENSOR_TERRAIN_ROUGHNESS_H
#define TESS_TENSOR_TERRAIN_ROUGHNESS_H

#include <stdint.h>

typedef struct tess_roughness_area {
    const float *values;
    const uint8_t *flags;             /* not 0: void */
    int64_t w;                        /* pixels from row to row */
    int64_t top, left, bottom, right; /* the part that is looked at */
} tess_roughness_area;

/* NaN when fewer than 16 second differences are valid. */
double tess_roughness(const tess_roughness_area *area, int64_t lag);
/* The exponent s between `lag` and 2 lag, where lag need not be whole; 1 when there are too few valid pixels. */
double tess_roughness_exponent(const tess_roughness_area *area, double lag);

#endif
