/* bench_stats_epochs.h: the steps of phase 2 of bench stats, and where their batches come from. */
#ifndef TESS_JOB_BENCH_STATS_EPOCHS_H
#define TESS_JOB_BENCH_STATS_EPOCHS_H

#include "job/study/bench_stats.h"
#include "model/spectral/network.h"
#include "plan/training.h"
#include "train/config.h"
#include "train/feed.h"
#include "train/schedule.h"
#include "train/statistics/condense.h"
#include "train/steps.h"

/* Samples of the host's memory, in their order. */
typedef struct tess_stats_source {
    tess_source source; /* first */
    const tess_stats_data *data;
    const void *base;
    int64_t distinct;
} tess_stats_source;

typedef struct tess_stats_epochs {
    tess_stats_device *device;
    const tess_stats_data *data;
    tess_stats_point *point;
    tess_train_config config; /* optimizer and schedule alone */
    tess_train_state state;
    tess_spectral_plan *plan;
    tess_spectral_state fitted;
    tess_net *net;
    tess_training *training;
    tess_training_choice choice;
    tess_path path;
    tess_block work, condensed;
    tess_stats_source source;
    tess_data_queue *queue; /* NULL: cubes are where the device computes */
    tess_feed feed;
    tess_steps steps;
    bool overlap; /* the next step is queued before the result of one is taken */
} tess_stats_epochs;

/* What a step takes of a cube. */
tess_tensor tess_stats_sample(const tess_stats_epochs *e);
/* Starts the threads that prepare batches from the step of now on, unless cubes are where the device computes. */
tess_status tess_stats_open_queue(tess_stats_epochs *e, tess_error *error) TESS_MUST_CHECK;
void tess_stats_close_queue(tess_stats_epochs *e);
/* One step. `last`: none is queued behind it, so that the device is idle afterwards. */
tess_status tess_stats_step(tess_stats_epochs *e, bool last, tess_error *error) TESS_MUST_CHECK;

#endif
