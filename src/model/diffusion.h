/* diffusion.h: the UNet of guided-diffusion, as diffusion models of elevation maps use it (Palette, Diff-DEM): residual blocks
 * with group norms whose scales and shifts depend on the noise level, attention at some scales, and skips that
 * concatenate.
 *
 * Scales and shifts depend on the noise level alone. So the network is divided: `embedding` turns a noise level into the table
 * of all scales and shifts, once for each step of a schedule; `step` reads the table and predicts the noise of an image. */
#ifndef TESS_MODEL_DIFFUSION_H
#define TESS_MODEL_DIFFUSION_H

#include "model/model.h"

typedef struct tess_diffusion_net {
    tess_net *embedding; /* vector of `levels` values (tess_diffusion_level) -> vector of `table` values */
    /* Inputs: an image of `channels` channels, the noisy image last, which a run leaves as it is; a vector of `table`
     * values for the whole batch. Output: the noise, one channel. A network to be trained has everything in
     * `step`, whose second input is the vector of `levels` values of each image; `embedding` is NULL. */
    tess_net *step;
    int64_t channels, levels;
    int64_t
        table; /* scales and shifts of every residual block, one block after another, in the order of the forward pass */
    int64_t grid; /* images are multiples of this */
    int64_t parameters;
} tess_diffusion_net;

/* Whether the file has such a network, complete or not. */
bool tess_diffusion_has(const tess_weights *weights);
/* Takes files as they are published (names with or without `denoise_fn.`; buffers of the schedule are ignored) and as
 * training writes them. Widths, residual blocks and attention follow from names and shapes. Attention has heads of 8
 * channels, or of the file's metadata `num_head_channels`; norms have 32 groups, or the largest power of two that
 * divides all widths, or the metadata `num_groups`. */
tess_status tess_diffusion_recognise(tess_weights *weights, tess_diffusion_net *net,
                                     tess_error *error) TESS_MUST_CHECK;
/* The same for training, with this rate of dropout in every residual block. */
tess_status tess_diffusion_recognise_trained(tess_weights *weights, double dropout, tess_diffusion_net *net,
                                             tess_error *error) TESS_MUST_CHECK;
void tess_diffusion_clear(tess_diffusion_net *net);

/* What the network is told of the noise level gamma, the share of the signal in the variance: cos(gamma f_i), then
 * sin(gamma f_i), with f_i = 10000^(-2 i / levels). */
void tess_diffusion_level(double gamma, int64_t levels, float *values);

#endif
