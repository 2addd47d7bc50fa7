/* rates.h: the seconds of the operator: planned, and learned from a run. */
#ifndef TESS_JOB_RECONSTRUCT_PLAN_RATES_H
#define TESS_JOB_RECONSTRUCT_PLAN_RATES_H

#include "job/common/engine.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "physics/operator.h"

/* Runs of the operator or its adjoint in a reconstruction, start included. */
double tess_physics_runs(const tess_operator *op, const tess_recipe *recipe);
/* Seconds of gradients, and of the step and the start before them; clears *calibrated if the operator was not
 * measured. */
double tess_physics_seconds(const tess_rates *rates, const tess_operator *op, const tess_recipe *recipe,
                            bool *calibrated);
/* Stores the time of a data step for the next plan. */
void tess_physics_keep_rate(tess_engine *engine, const tess_operator *op, const tess_recipe *recipe,
                            double seconds);

#endif
