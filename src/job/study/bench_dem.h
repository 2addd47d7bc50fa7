/* bench_dem.h: the study of the diffusion sampler, shared by bench_dem.c (models, precisions, lines) and bench_dem_point.c
 * (one point). */
#ifndef TESS_JOB_BENCH_DEM_H
#define TESS_JOB_BENCH_DEM_H

#include "job/study/bench.h"
#include "solve/diffusion_sampler.h"

typedef struct tess_dem_study {
    tess_study study; /* without model and streams */
    tess_weights *file;
    tess_diffusion_net net;
    tess_bound *embedding, *step; /* in the precision that is measured */
    tess_block embedding_weights, step_weights;
    tess_block host; /* tiles and results of the largest batch */
    tess_sampler_batch tiles;
    float *result;
    tess_mem_usage held; /* besides what belongs to a point */
} tess_dem_study;

typedef struct tess_dem_point {
    tess_sampler_kind kind;
    int64_t batch;
    /* measured: */
    tess_bench_result result; /* of one batch, all steps */
    int64_t repeats;
    tess_meter_reading reading; /* of all repeats */
    double planned_seconds;
    bool calibrated;
} tess_dem_point;

/* Which bytes belong to a point: on the CPU also those of the host. */
tess_mem_scope tess_dem_scope(const tess_dem_study *dem);
/* Loads the weights, and releases them. */
tess_status tess_dem_load(tess_dem_study *dem, tess_error *error) TESS_MUST_CHECK;
void tess_dem_unload(tess_dem_study *dem);
/* Measures missing rates of this batch, and loads everything that a first run loads. The weights must be loaded. */
tess_status tess_dem_warm(tess_dem_study *dem, tess_dem_point *point, tess_error *error) TESS_MUST_CHECK;
tess_status tess_dem_measure(tess_dem_study *dem, tess_dem_point *point, tess_error *error) TESS_MUST_CHECK;

#endif
