/* noise.h: the filter of a scan's start and the first sigma, from the noise of the measurements. */
#ifndef TESS_JOB_RECONSTRUCT_RUN_NOISE_H
#define TESS_JOB_RECONSTRUCT_RUN_NOISE_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/workspace.h"

void tess_recipe_set_filter(const tess_problem *problem, tess_operator *op, tess_filter filter);
/* Sets `filter` of the recipe, for measurements of this noise and an image up to `high`, and the deviation of the noise that
 * Ram-Lak passes, as a share of that. Overwrites vectors[0] and the residual. */
tess_status tess_recipe_choose_filter(const tess_problem *problem, tess_recipe *recipe,
                                      tess_workspace *workspace, double noise, double high, double *deviation,
                                      tess_error *error) TESS_MUST_CHECK;
/* Sets `filter` and, unless it is fixed, `sigma` of the recipe. The noise, the range and the unit must be known.
 * Overwrites vectors[0] and the residual. */
tess_status tess_recipe_follow_noise(const tess_problem *problem, tess_recipe *recipe,
                                     tess_workspace *workspace, tess_error *error) TESS_MUST_CHECK;

#endif
