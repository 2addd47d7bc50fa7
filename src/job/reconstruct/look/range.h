/* range.h: estimates the range of an image and the noise of its measurements, if they were not given. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_RANGE_H
#define TESS_JOB_RECONSTRUCT_LOOK_RANGE_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/workspace.h"

/* Sets the range and unit of the problem and the noise of the recipe, and scales the measurements. Notes go to
 * `common`. */
tess_status tess_problem_find_range(tess_problem *problem, tess_recipe *recipe, tess_workspace *workspace,
                                    const tess_common *common, tess_error *error) TESS_MUST_CHECK;
/* Collective. The least mean of small blocks of `image` times `factor`, if enough of them are below a value; else 0. */
tess_status tess_problem_least(tess_workspace *workspace, void *image, double factor, double below,
                               double *least, tess_error *error) TESS_MUST_CHECK;
/* Notes an estimated range at which a part of the result is cut off. */
tess_status tess_problem_doubt_range(const tess_problem *problem, tess_workspace *workspace,
                                     const tess_common *common, tess_error *error) TESS_MUST_CHECK;

/* Collective: how many values of the result are at the end of the range. */
tess_status tess_problem_at_end(const tess_problem *problem, tess_workspace *workspace, double *at_end,
                                tess_error *error) TESS_MUST_CHECK;

#endif
