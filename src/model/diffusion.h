/* diffusion.h: a network that predicts the noise of an image, divided into what depends on the noise level alone and the rest. */
#ifndef TESS_MODEL_DIFFUSION_H
#define TESS_MODEL_DIFFUSION_H

#include "model/model.h"

typedef struct tess_diffusion_net {
    tess_net *embedding; /* vector of `levels` values (tess_diffusion_level) -> vector of `table` values */
    /* Inputs: an image of `channels` channels, the noisy image last, which a run leaves as it is; a vector of `table`
     * values. Output: the noise, one channel. */
    tess_net *step;
    int64_t channels, levels, table, grid, parameters;
} tess_diffusion_net;

/* What the network is told of the noise level gamma: cos(gamma f_i), then sin(gamma f_i), with f_i = 10000^(-2 i / levels). */
void tess_diffusion_level(double gamma, int64_t levels, float *values);

#endif
