/* gains.h: exposures of several blurs of one picture. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_GAINS_H
#define TESS_JOB_RECONSTRUCT_LOOK_GAINS_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Divides each blur by its exposure: as given, otherwise as estimated, relative to the first blur, if they plainly differ. */
tess_status tess_problem_level_gains(tess_problem *problem, tess_workspace *workspace,
                                     const tess_common *common, tess_error *error) TESS_MUST_CHECK;

#endif
