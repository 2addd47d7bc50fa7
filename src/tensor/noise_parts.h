/* noise_parts.h: what noise_fit.c, noise_clip.c and noise_slope.c share. */
#ifndef TESS_TENSOR_NOISE_PARTS_H
#define TESS_TENSOR_NOISE_PARTS_H

#include "tensor/noise.h"

enum { TESS_NOISE_CLIP_STEPS = 256 };

/* How much of the noise's variance is left in a patch that has a certain mean after clipping. */
typedef struct tess_noise_clip {
    double low, high; /* the limits; infinite where there is none */
    double first, step;
    float kept[TESS_NOISE_CLIP_STEPS]; /* by mean, from `first`; 0: leave such a patch out */
} tess_noise_clip;

/* False when the channel is not clipped: limits at both ends, where samples are piled up. */
bool tess_noise_find_limits(const tess_noise *noise, int channel, tess_noise_clip *clip);
void tess_noise_clip_for(tess_noise_clip *clip, double sigma);
double tess_noise_kept(const tess_noise_clip *clip, double mean);

/* A key sorts by energy, then by index; its lower half is the index. `other` has room for as many. */
uint64_t tess_noise_key(double energy, int64_t index);
void tess_noise_sort(uint64_t *keys, int64_t count, uint64_t *other);

/* Fits variance(x) = read^2 + gain * x over the first `count` patches of noise->order; false, and nothing changed, where
 * the image does not show a gain. */
bool tess_noise_find_slope(const tess_noise *noise, int channel, const tess_noise_clip *clip, int64_t count,
                           tess_noise_level *level);

#endif
