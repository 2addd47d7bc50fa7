/* bench_scaling_passes.h: passes of the denoiser over strips of an image. Speeds of ranks are measured before the first pass, which warms
 * up and is not counted; each later one is divided by what the passes before it showed: their mean, in which each counts twice as much
 * as the one before it, and predicted from the times of each rank's stages in the pass before it. After copies, which take long, a pass warms up again. A short measurement describes the moment, and a core that others use, too, has another speed a second later. */
#ifndef TESS_JOB_BENCH_SCALING_PASSES_H
#define TESS_JOB_BENCH_SCALING_PASSES_H

#include "job/study/bench_scaling_strip.h"

typedef struct tess_passes_job {
    tess_engine *engine;
    tess_engine_model *model; /* loaded */
    const tess_scale_problem *problem;
    int ranks, repeats; /* repeats: fewer if they take long */
    bool warm;          /* no pass before the first */
    int copies;         /* between the passes, every rank denoises a whole image as often as that */
    uint64_t seed;
} tess_passes_job;

/* One pass, and the speeds by which its rows were divided, beside that of the rates; NULL: a single rank, or equal rows. */
typedef struct tess_divided_pass {
    tess_strip_times times;
    double *speeds;
    double *of_stage; /* as the pass before it showed them: see tess_pace */
    int stages;
} tess_divided_pass;

typedef struct tess_point_passes {
    tess_divided_pass *list;
    double *seconds; /* of each, in order */
    int count, median;
    tess_strip_times warm; /* the last pass that warmed up */
    double *copies;        /* seconds for each image, when every rank had one, in order */
    int copy_count;
    double spread;
} tess_point_passes;

/* Collective. Release the passes also after a failure. */
tess_status tess_passes_measure(const tess_passes_job *job, tess_point_passes *passes,
                                tess_error *error) TESS_MUST_CHECK;
/* What the simulation makes of the passes; medians. by_stage: from the times of the stages of the pass before each. */
typedef struct tess_passes_prediction {
    tess_scale_point by_stage;
    double seconds;          /* of by_stage */
    double seconds_by_rates; /* from the rates of ops, and the speeds of ranks */
} tess_passes_prediction;
tess_status tess_passes_predict(const tess_point_passes *passes, const tess_passes_job *job,
                                const tess_scale_setup *setup, tess_passes_prediction *prediction,
                                tess_error *error) TESS_MUST_CHECK;
void tess_passes_release(tess_point_passes *passes);

static inline const tess_divided_pass *tess_passes_median(const tess_point_passes *passes)
{
    return &passes->list[passes->median];
}

#endif
