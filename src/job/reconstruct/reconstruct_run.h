/* reconstruct_run.h: the iterations, and what is known of them. */
#ifndef TESS_JOB_RECONSTRUCT_RUN_H
#define TESS_JOB_RECONSTRUCT_RUN_H

#include "job/common/prior.h"
#include "job/reconstruct/reconstruct_quality.h"
#include "job/reconstruct/reconstruct_settings.h"

typedef struct tess_iteration {
    double psnr, ssim, gradient_seconds, denoise_seconds, step, sigma, change;
    uint64_t gradient_peak_bytes, denoise_peak_bytes;
} tess_iteration;

typedef struct tess_outcome {
    tess_pnp_result result;
    tess_iteration *iterations; /* owned; NULL: the run did not begin */
    int64_t done;               /* of them: the last one before a stop may be half computed */
    double psnr, ssim;          /* NaN: not known */
    double seconds;             /* of the start and the iterations */
    bool interrupted;
} tess_outcome;

/* What the process and the device were seen to hold. */
typedef struct tess_usage {
    double start;              /* of the job, by the clock */
    uint64_t overhead, loaded; /* resident before the plan, and once the weights are there */
    uint64_t free_before,
        least_free; /* of the device's memory: without the job, and the least while it ran */
} tess_usage;

/* Libraries are open and their handles made since there is an operator; what that holds is counted. */
void tess_usage_begin(tess_usage *usage, const tess_engine *engine);
void tess_usage_look(tess_usage *usage, tess_device *device);

typedef struct tess_solving {
    const tess_judge *judge;
    const tess_recipe *recipe;
    double norm_squared; /* of the operator; 0: not known */
    double max_seconds, tolerance;
    tess_prior *prior;
    tess_usage *usage;
    tess_outcome *outcome;
} tess_solving;

tess_status tess_outcome_begin(tess_outcome *outcome, int64_t iterations, tess_error *error) TESS_MUST_CHECK;
void tess_outcome_clear(tess_outcome *outcome);
/* From the first estimate in vectors[0] of the workspace to the result in its place. */
tess_status tess_reconstruct_solve(const tess_solving *solving, tess_error *error) TESS_MUST_CHECK;

#endif
