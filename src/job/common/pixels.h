/* pixels.h: between rows of a file's samples and the tensors of a network: scale, add noise, pad, append the
 * noise level on the way in; crop, clamp, round, carry alpha on the way out. */
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
    bool float_out; /* the strip takes fp32 instead of the file's samples */
    /* of the map, for each plane (the last for all further ones), unless: */
    float sigma[TESS_NOISE_CHANNELS];
    bool sigma_channel; /* the image's last channel is the noise level of each pixel, carried as alpha is */
    float add_noise;
    tess_rng_key noise;
    tess_pool *pool;
    float *scratch; /* 2 rows a thread; see tess_pixels_scratch */
} tess_pixels;

/* The noise level of a plane. */
float tess_pixels_sigma(const tess_pixels *pixels, int64_t plane);
/* Host scratch, in bytes for one pixel of a window's width. */
size_t tess_pixels_scratch(const tess_pixels *pixels, int threads);

/* A row of the file's samples as values, with its noise; `draws`: scratch for the row's colours. */
void tess_pixels_noisy_row(const tess_pixels *pixels, int64_t y, const void *samples, float *draws,
                           float *values);

/* Fills batch item `item` of `tensor` from the window of the strip at these columns; `plane` is ignored when
 * planes is 1. */
void tess_pixels_gather(const tess_pixels *pixels, const tess_strip *strip, const tess_span *cols,
                        int64_t plane, const tess_tensor *tensor, int64_t item, void *data);
/* The core of the window, from batch item `item` into the strip's output rows. */
void tess_pixels_scatter(const tess_pixels *pixels, const tess_strip *strip, const tess_span *cols,
                         int64_t plane, const tess_tensor *tensor, int64_t item, const void *data);

#endif
