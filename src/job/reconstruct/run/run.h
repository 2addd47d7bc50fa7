/* run.h: the iterations and their results. */
#ifndef TESS_JOB_RECONSTRUCT_RUN_RUN_H
#define TESS_JOB_RECONSTRUCT_RUN_RUN_H

#include "job/common/prior.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/quality.h"

typedef struct tess_iteration {
    double psnr, ssim, gradient_seconds, denoise_seconds, step, sigma, change;
    uint64_t gradient_peak_bytes, denoise_peak_bytes;
} tess_iteration;

typedef struct tess_outcome {
    tess_pnp_result result;
    tess_iteration *iterations; /* owned; NULL: the run did not start */
    int64_t done;               /* completed iterations: the last one before a stop may be incomplete */
    double psnr, ssim;          /* NaN: not known */
    double seconds;             /* of the start and the iterations */
    double rings;               /* rings.h: root mean square of what was subtracted; 0: nothing */
    double
        settled;   /* settle.h: the network's own error, for which the data made up at the end; 0: for none */
    double misfit; /* settle.h: how many times the noise the data and the picture differ; 0: they fit */
    double rim;    /* rim.h: what a volume misses at its sides, as a share of the largest; 0: nothing */
    double raised; /* the noise of the second run, if they do not; 0: there was none */
    bool interrupted;
} tess_outcome;

/* Memory of the process and the device, as measured. */
typedef struct tess_usage {
    double start;                     /* start of the job, by the clock */
    uint64_t overhead, loaded;        /* resident bytes before the plan, and after the weights are loaded */
    uint64_t free_before, least_free; /* free device memory: without the job, and the least during the run */
} tess_usage;

/* Called when the operator exists: libraries are open by then, and their memory counts as overhead. */
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
/* Runs from the first estimate in vectors[0] of the workspace, which the result replaces. */
tess_status tess_reconstruct_solve(const tess_solving *solving, tess_error *error) TESS_MUST_CHECK;

#endif
