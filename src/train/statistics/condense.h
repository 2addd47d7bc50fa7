/* condense.h: a few pixels in place of those of an image, for networks that see nothing but mean and covariance of them.
 *
 * If all layers are affine and all losses are mean squared differences of their values (tess_net_is_quadratic), loss and gradients of an
 * image are functions of the mean m and the covariance S = L L' of its c channels. The 2 c pixels m + sqrt(c) l_k and m - sqrt(c) l_k, with
 * the columns l_k of L, have the same ones, so that a step over them is the same step but for rounding, whatever the number of pixels.
 *
 * Moments are computed on the device in fp64, in one pass over the images; L is Cholesky's factor. A pixel without a value has no part. */
#ifndef TESS_TRAIN_STATISTICS_CONDENSE_H
#define TESS_TRAIN_STATISTICS_CONDENSE_H

#include "train/statistics/stage.h"

static inline int64_t tess_condensed_pixels(int channels)
{
    return 2 * (int64_t)channels;
}

/* Bytes that condensing holds; the condensed pixels are the caller's. */
tess_status tess_condense_plan(const tess_pixel_stage_settings *settings, const tess_spectral_plan *plan,
                               const tess_pixel_set *set, tess_mem_bytes *bytes,
                               tess_error *error) TESS_MUST_CHECK;
/* `path`: from the samples to the network's input. `pixels`: (images, 2 c, c) values on the host, c being the channels behind the path. */
tess_status tess_condense(const tess_pixel_stage_settings *settings, const tess_pixel_set *set,
                          const tess_path *path, float *pixels, tess_error *error) TESS_MUST_CHECK;

#endif
