/* noise.h: the noise of measured blurs, and their weights if it differs. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_NOISE_H
#define TESS_JOB_RECONSTRUCT_LOOK_NOISE_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/workspace.h"

/* The least noise that is assumed: an estimate below it is raised to it. */
double tess_problem_least_noise(const tess_problem *problem);
/* Bytes of the host's block that exists while the noise of measured blurs is estimated; 0: it is not. */
size_t tess_problem_blur_noise_bytes(const tess_problem *problem, const tess_recipe *recipe);
/* Estimates the noise of measured blurs, and their weights if it differs. `constant`: all values are equal. */
tess_status tess_problem_find_noise(tess_problem *problem, tess_recipe *recipe, tess_workspace *workspace,
                                    const tess_common *common, bool constant,
                                    tess_error *error) TESS_MUST_CHECK;
/* Collective. Looks for stripes (stripes.h): an estimated noise is raised for them, of a given one it is only said. */
tess_status tess_problem_doubt_noise(const tess_problem *problem, tess_recipe *recipe,
                                     tess_workspace *workspace, const tess_common *common,
                                     tess_error *error) TESS_MUST_CHECK;
/* Weight of blur i in the data term. */
double tess_problem_weight(const tess_problem *problem, int64_t i);
/* Multiplies each blur and its measurement by its weight. */
tess_status tess_problem_weigh(const tess_problem *problem, tess_workspace *workspace,
                               tess_error *error) TESS_MUST_CHECK;

#endif
