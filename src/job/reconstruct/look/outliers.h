/* outliers.h: hot and dead pixels of the camera in measured blurs. Deconvolution would make a star with rings of each, and an
 * estimated range would end at the brightest. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_OUTLIERS_H
#define TESS_JOB_RECONSTRUCT_LOOK_OUTLIERS_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Collective: replaces outliers (outlier.h) by the median of the values around them, and counts them in problem->outliers. Many of
 * them have another cause: they stay, and a note says so. */
tess_status tess_problem_replace_outliers(tess_problem *problem, tess_workspace *workspace,
                                          const tess_common *common, tess_error *error) TESS_MUST_CHECK;

#endif
