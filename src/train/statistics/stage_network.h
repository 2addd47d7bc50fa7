/* stage_network.h: the network that scores the pixels of a pipeline (model/spectral/network.h), for a fixed number of pixels at a
 * time: they do not depend on each other, so the last ones of a block run beside old ones. */
#ifndef TESS_TRAIN_STATISTICS_STAGE_NETWORK_H
#define TESS_TRAIN_STATISTICS_STAGE_NETWORK_H

#include "model/spectral/network.h"
#include "net/plan.h"

typedef struct tess_pixel_network {
    tess_device *device;
    tess_net *net;
    tess_bound *bound;
    tess_net_plan *plan;
    int64_t pixels; /* at a time */
    int channels;
    size_t weight_bytes, arena_bytes, workspace_bytes;
    tess_block weights, arena, workspace; /* the caller's */
} tess_pixel_network;

/* Plans; allocates nothing on the device. `most`: pixels that are wanted at once. */
tess_status tess_pixel_network_create(tess_device *device, const tess_spectral_plan *plan, int64_t most,
                                      tess_pixel_network *out, tess_error *error) TESS_MUST_CHECK;
void tess_pixel_network_destroy(tess_pixel_network *network); /* zeros are allowed */
/* The parameters of now. `work` has tess_spectral_network_workspace values. */
tess_status tess_pixel_network_load(tess_pixel_network *network, const tess_spectral_state *state,
                                    double *work, tess_error *error) TESS_MUST_CHECK;
/* Scores of pixels, both in the device's memory. */
void tess_pixel_network_run(tess_pixel_network *network, const float *at, int64_t pixels, float *scores);

#endif
