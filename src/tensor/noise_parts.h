/* noise_parts.h: declarations shared by noise_fit.c, noise_clip.c, noise_slope.c and noise_depth.c. */
#ifndef TESS_TENSOR_NOISE_PARTS_H
#define TESS_TENSOR_NOISE_PARTS_H

#include "tensor/noise.h"

enum { TESS_NOISE_CLIP_STEPS = 256 };

/* The share of the noise's variance that remains in a patch, by the mean of the patch after clipping. */
typedef struct tess_noise_clip {
    double low, high; /* the limits; infinite where there is none */
    double first, step;
    float kept[TESS_NOISE_CLIP_STEPS]; /* by mean, from `first`; 0: do not use such a patch */
} tess_noise_clip;

/* Finds the limits, at either end, at which many samples lie. Returns false when the channel is not clipped. */
bool tess_noise_find_limits(const tess_noise *noise, int channel, tess_noise_clip *clip);
void tess_noise_clip_for(tess_noise_clip *clip, double sigma);
double tess_noise_kept(const tess_noise_clip *clip, double mean);

/* Keys sort by energy, then by index; the lower half of a key is the index. `other` is scratch of the same
 * size. */
uint64_t tess_noise_key(double energy, int64_t index);
void tess_noise_sort(uint64_t *keys, int64_t count, uint64_t *other);

/* The estimate from the quietest of some patches. */
typedef struct tess_noise_answer {
    double sigma, texture; /* texture: log of low to high energy, -0.63 in pure noise */
    double mean;           /* of the quietest patches */
    int64_t count;
} tess_noise_answer;

/* Estimates from the patches whose indices are in the lower halves of `keys`. Sorts `keys`. */
tess_noise_answer tess_noise_ask(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                                 uint64_t *keys, int64_t count);

/* Fits the variance as a function of brightness, and sets gain, read, zero and sigma when the image shows a
 * gain. Otherwise sets `uneven` and, when that is true, sigma and read. Overwrites noise->order. */
void tess_noise_find_slope(const tess_noise *noise, int channel, const tess_noise_clip *clip,
                           tess_noise_level *level);

/* For volumes (noise_depth.c). The memory for the slices, and its division; the next row; and the comparison
 * after the last slice. */
size_t tess_noise_slices_bytes(const tess_noise_shape *shape);
void tess_noise_begin_slices(tess_noise *noise, void *memory);
void tess_noise_slice_row(tess_noise *noise, const float *values, const unsigned char *valid);
void tess_noise_compare_slices(const tess_noise *noise, tess_noise_result *result);

/* For volumes with photon noise (noise_exposure.c): whether the slices were exposed differently; if so, sets
 * result->slices. */
bool tess_noise_compare_exposures(const tess_noise *noise, tess_noise_result *result);

/* The same as tess_noise_bytes and tess_noise_begin, with at most `patches` for each channel. */
size_t tess_noise_bytes_for(const tess_noise_shape *shape, int64_t patches);
void tess_noise_begin_for(tess_noise *noise, const tess_noise_shape *shape, int64_t patches, void *memory);

#endif
