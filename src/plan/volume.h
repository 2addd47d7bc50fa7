/* volume.h: how a volume goes through a 3-D network: the whole when it fits; else the windows, cut in depth, height and
 * width, that compute the fewest voxels among those that fit. */
#ifndef TESS_PLAN_VOLUME_H
#define TESS_PLAN_VOLUME_H

#include "plan/denoise.h"

typedef struct tess_volume_wish {
    int64_t size[TESS_SPATIAL];
    int64_t tile[TESS_SPATIAL]; /* 0 for the height: choose; else the largest tile of each axis, 0: not cut */
    int64_t halo;               /* as in tess_denoise_settings */
    uint64_t limit;             /* of the device, for everything */
    uint64_t others;            /* what is taken besides the network */
    uint64_t asked_limit;       /* what the user set, for messages; 0 = nothing */
    uint64_t job_needs;         /* the least limit for the rest of the job */
    bool apart;                 /* the device's memory is its own */
} tess_volume_wish;

/* Fills all of the choice but what passes rows of files; the batch is 1. */
tess_status tess_volume_choose(const tess_bound *bound, const tess_model_net *model, const tess_rates *rates,
                               const tess_volume_wish *wish, tess_denoise_choice *choice,
                               tess_error *error) TESS_MUST_CHECK;

#endif
