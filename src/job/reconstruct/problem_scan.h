/* problem_scan.h: the noise of a measured scan. */
#ifndef TESS_JOB_PROBLEM_SCAN_H
#define TESS_JOB_PROBLEM_SCAN_H

#include "job/reconstruct/problem.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/workspace.h"

/* Whether the noise of these measurements is to be estimated when they are there. */
bool tess_problem_noise_unknown(const tess_problem *problem, const tess_recipe *recipe);
/* Estimates it, in the units of the solver. It is used if it is above the default. */
tess_status tess_problem_find_scan_noise(tess_problem *problem, tess_recipe *recipe,
                                         tess_workspace *workspace, const tess_common *common,
                                         tess_error *error) TESS_MUST_CHECK;

#endif
