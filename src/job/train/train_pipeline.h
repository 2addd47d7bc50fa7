/* train_pipeline.h: what a run that trains a hyperspectral pipeline has besides: its cubes, the pipeline and its fitted state. Phase 1
 * (train/statistics) fits the state before the first step; the parameters of the step are taken from it, and go back into it. */
#ifndef TESS_JOB_TRAIN_PIPELINE_H
#define TESS_JOB_TRAIN_PIPELINE_H

#include "model/spectral/network.h"
#include "model/spectral/path.h"
#include "train/statistics/condense.h"
#include "train/statistics/cubes.h"
#include "train/statistics/statistics.h"

typedef struct tess_train_spectral {
    tess_pixel_cubes cubes;
    tess_spectral_plan *plan;
    tess_spectral_state state;
    bool fitted;                       /* the configuration names a fitted pipeline */
    bool trained[TESS_PIPELINE_NODES]; /* nodes that gradients change */
    bool masks;                        /* a loss needs the cubes' masks */
    tess_block work;                   /* of tess_spectral_get, and for the path */
    tess_path path;                    /* from the file to the network's input */
    bool condenses;                    /* some pixels stand for each image: train/statistics/condense.h */
    tess_block condensed;              /* them */
    tess_mem_bytes first;              /* bytes of phase 1 */
    size_t start_bytes;                /* of writing or reading what it fitted */
    double statistics_seconds;
    tess_stop stop; /* of what reads pixels: stops with the run */
} tess_train_spectral;

struct tess_train_job;
/* train_pipeline_start.c: before anything is read. */
void tess_spectral_watch(struct tess_train_job *job);
/* Bytes of the condensed pixels; 0: there are none. */
size_t tess_spectral_condensed_bytes(const struct tess_train_job *job);
/* How pixels are read for phase 1 and validations. */
tess_pixel_stage_settings tess_spectral_stage(struct tess_train_job *job);
/* Values of `work` that the path has; the rest is for tess_spectral_get. */
size_t tess_spectral_path_values(const tess_train_spectral *s);

#endif
