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

/* What the quietest of some patches say. */
typedef struct tess_noise_answer {
    double sigma, texture; /* texture: log of low to high energy, -0.63 in noise alone */
    double mean;           /* of the quietest */
    int64_t count;
} tess_noise_answer;

/* Of the patches whose indices are in the lower halves of `keys`, which are sorted on the way. */
tess_noise_answer tess_noise_ask(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                                 uint64_t *keys, int64_t count);

/* Fits the variance by brightness, and sets gain, read, zero and sigma where the image shows a gain. Otherwise only `uneven`
 * and, where that is true, sigma are set. noise->order is written over. */
void tess_noise_find_slope(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                           tess_noise_level *level);

/* Of a volume: marks the end of a slice, and looks at the parts of the depth once all is there. */
void tess_noise_end_slice(tess_noise *noise, int64_t slice);
void tess_noise_compare_slices(const tess_noise *noise, tess_noise_result *result);

#endif
