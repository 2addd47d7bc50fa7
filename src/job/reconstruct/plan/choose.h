/* choose.h: decides on the device of a reconstruction. */
#ifndef TESS_JOB_RECONSTRUCT_PLAN_CHOOSE_H
#define TESS_JOB_RECONSTRUCT_PLAN_CHOOSE_H

#include "job/common/prior.h"
#include "job/reconstruct/plan/plan.h"
#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/reconstruct_settings.h"

/* Lists the work of all iterations, if the device is not decided, and settles it. The prior's model is found; its cut is
 * chosen by the plan, afterwards. */
tess_status tess_reconstruct_choose(tess_engine *engine, const tess_reconstruct_settings *settings,
                                    const tess_problem *problem, const tess_recipe *recipe,
                                    const tess_prior *prior, tess_error *error) TESS_MUST_CHECK;
/* Learns from a run that is done: seconds of the whole job and of its iterations. */
void tess_reconstruct_learn(const tess_prior *prior, const tess_budget *budget, double wall, double seconds);

#endif
