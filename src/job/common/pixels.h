/* pixels.h: converts between rows of a file's samples and the tensors of a network. Input: scale, add noise, pad,
 * append the noise level. Output: crop, clamp, round, copy alpha. */
#ifndef TESS_JOB_PIXELS_H
#define TESS_JOB_PIXELS_H

#include "base/pool.h"
#include "base/rng.h"
#include "io/image.h"
#include "tensor/noise.h"
#include "tile/ring.h"

typedef struct tess_pixels {
    tess_image_info image;
    int64_t colours; /* channels without alpha */
    int64_t planes;  /* 1, or `colours` when the network takes one channel at a time */
    bool noise_map;
    bool float_out; /* the strip holds fp32 values instead of the file's samples */
    /* noise level of each plane (the last one also for all further planes), unless sigma_channel */
    float sigma[TESS_NOISE_CHANNELS];
    const float *all_sigma; /* the same of all planes, or NULL */
    /* the image's last channel holds the noise level of each pixel; it is copied like alpha */
    bool sigma_channel;
    float add_noise;
    int64_t first_row; /* of the file, if the image is a part of it; noise depends on the place in the file */
    int64_t first_column, file_width; /* the same; file_width 0: the image has whole rows */
    tess_rng_key noise;
    tess_pool *pool;
    float *scratch; /* 2 rows per thread; see tess_pixels_scratch */
} tess_pixels;

float tess_pixels_sigma(const tess_pixels *pixels, int64_t plane);
/* Host scratch in bytes per pixel of a window's width. */
size_t tess_pixels_scratch(const tess_pixels *pixels, int threads);

/* Converts a row of samples to values and adds the noise; `draws`: scratch for the row's colours. */
void tess_pixels_noisy_row(const tess_pixels *pixels, int64_t y, const void *samples, float *draws,
                           float *values);

/* Fills batch item `item` of `tensor` from the strip's window at these columns; ignores `plane` if planes is 1. */
void tess_pixels_gather(const tess_pixels *pixels, const tess_strip *strip, const tess_span *cols,
                        int64_t plane, const tess_tensor *tensor, int64_t item, void *data);
/* Writes the core of the window from batch item `item` to the strip's output rows. */
void tess_pixels_scatter(const tess_pixels *pixels, const tess_strip *strip, const tess_span *cols,
                         int64_t plane, const tess_tensor *tensor, int64_t item, const void *data);

#endif
