#ifndef TESS_JOB_RECONSTRUCT_LOOK_LOOK_H
#define TESS_JOB_RECONSTRUCT_LOOK_LOOK_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/workspace.h"

/* tess_problem_find_range for measured blurs. */
tess_status tess_problem_look_at_blurs(tess_problem *problem, tess_recipe *recipe, tess_workspace *workspace,
                                       const tess_common *common, tess_error *error) TESS_MUST_CHECK;

#endif
