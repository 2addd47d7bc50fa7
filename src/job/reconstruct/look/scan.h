/* scan.h: the noise of a measured scan. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_SCAN_H
#define TESS_JOB_RECONSTRUCT_LOOK_SCAN_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/workspace.h"

/* Whether the noise of these measurements is to be estimated when they are there. */
bool tess_problem_noise_unknown(const tess_problem *problem, const tess_recipe *recipe);
/* Bytes of the host's block that exists while the noise of a scan is estimated; 0: it is not. */
size_t tess_problem_scan_noise_bytes(const tess_problem *problem, const tess_recipe *recipe);
/* Sets `noise_estimate` of the problem, in the units that its measurements have now. */
tess_status tess_problem_find_scan_noise(tess_problem *problem, const tess_recipe *recipe,
                                         tess_workspace *workspace, tess_error *error) TESS_MUST_CHECK;
/* Uses the estimate, by now in the units of the solver, if it is above the default. */
void tess_problem_use_scan_noise(const tess_problem *problem, tess_recipe *recipe, const tess_common *common);

#endif
