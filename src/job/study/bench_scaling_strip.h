/* bench_scaling_strip.h: one image in strips over ranks, timed; and the link between neighbours. */
#ifndef TESS_JOB_BENCH_SCALING_STRIP_H
#define TESS_JOB_BENCH_SCALING_STRIP_H

#include "job/common/context.h"
#include "job/study/bench_scaling.h"

typedef struct tess_strip_job {
    tess_engine *engine;
    tess_engine_model *model; /* loaded */
    int64_t height, width;
    int ranks;            /* the others have nothing to do */
    bool alone;           /* each rank has the whole image to itself, and no neighbours */
    const double *speeds; /* of these, by which rows are divided; NULL: not known */
    uint64_t seed;
} tess_strip_job;

typedef struct tess_strip_times {
    tess_strips strips;
    double seconds;  /* of the slowest rank */
    double waiting;  /* of that rank, inside exchanges */
    double busy;     /* mean of the ranks with a part, without exchanges */
    double together; /* of all ranks together for one image, if each is alone */
    int64_t helped;  /* parts of convolutions that ranks computed for others */
    /* How fast each rank was in each stage, as in tess_pace; the owner calls tess_small_free. NULL: alone. */
    double *of_stage;
    int stages;
    double sent;                   /* the most bytes of a rank */
    uint64_t bytes, planned_bytes; /* the most of a rank */
} tess_strip_times;

/* Collective: one pass. found, of all launched ranks: the seconds that a rank's part takes by the rates over those that it took, without
 * waiting; 1 without a part. */
tess_status tess_strip_measure(const tess_strip_job *job, tess_strip_times *times, double *found,
                               tess_error *error) TESS_MUST_CHECK;
/* Collective. Exchanges messages between all neighbours at once; the slowest counts. All links are alike. */
tess_status tess_link_measure(tess_dist *dist, tess_links *links, tess_error *error) TESS_MUST_CHECK;

/* Means of the iterations of a reconstruction; on other ranks than 0, and if it cannot be done over ranks, zeros. */
typedef struct tess_iteration_times {
    int64_t iterations;
    double gradient, denoiser, bytes;
} tess_iteration_times;

/* Collective: all ranks share it. */
tess_status tess_iteration_measure(tess_context *context, const tess_bench_settings *settings,
                                   const char *name, const tess_scale_problem *problem,
                                   tess_iteration_times *times) TESS_MUST_CHECK;

#endif
