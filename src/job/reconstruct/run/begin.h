/* begin.h: work before the first iteration: the baseline, the step, and the first estimate. */
#ifndef TESS_JOB_RECONSTRUCT_RUN_BEGIN_H
#define TESS_JOB_RECONSTRUCT_RUN_BEGIN_H

#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/quality.h"

typedef struct tess_start {
    const char *baseline; /* its name */
    double baseline_psnr; /* NaN: not known */
    double norm_squared;  /* of the operator; 0: not needed */
    int64_t power_iterations, cg_iterations;
} tess_start;

/* Stores the first estimate in vectors[0] of the workspace; the measurements are released if the operator absorbs
 * them. Completes the recipe by what depends on the noise. */
tess_status tess_reconstruct_begin(const tess_judge *judge, tess_recipe *recipe, uint64_t seed,
                                   tess_start *start, tess_error *error) TESS_MUST_CHECK;
/* Whether data that do not fit may need the first estimate again (settle.h), which came from measurements that are gone by then.
 * Conjugate gradients find theirs again from what the operator absorbed. */
bool tess_reconstruct_keeps_start(const tess_problem *problem, const tess_recipe *recipe);
/* Stores the first estimate again: as it was, if it was kept, otherwise from measurements that were changed. */
tess_status tess_reconstruct_restart(const tess_judge *judge, const tess_recipe *recipe,
                                     tess_error *error) TESS_MUST_CHECK;

#endif
