/* reconstruct_rates.h: how long the operator takes: planned, and learned from a run. */
#ifndef TESS_JOB_RECONSTRUCT_RATES_H
#define TESS_JOB_RECONSTRUCT_RATES_H

#include "job/common/engine.h"
#include "job/reconstruct/reconstruct_settings.h"
#include "physics/operator.h"

/* Gradients, and what the step and the start cost before them; *calibrated is cleared when the operator was not measured. */
double tess_physics_seconds(const tess_engine *engine, const tess_operator *op, const tess_recipe *recipe,
                            bool *calibrated);
/* Keeps what a data step took, for the next plan. */
void tess_physics_keep_rate(tess_engine *engine, const tess_operator *op, const tess_recipe *recipe,
                            double seconds);

#endif
