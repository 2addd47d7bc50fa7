/* settle.h: the last step of measured blurs, from the network's picture towards the data (solve/settle.h). */
#ifndef TESS_JOB_RECONSTRUCT_RUN_SETTLE_H
#define TESS_JOB_RECONSTRUCT_RUN_SETTLE_H

#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/quality.h"

/* Collective. Changes vectors[0] of the workspace if its picture differs from the data by more than their noise; then
 * `settled` is the network's own error. */
tess_status tess_reconstruct_settle(const tess_judge *judge, const tess_recipe *recipe, double *settled,
                                    tess_error *error) TESS_MUST_CHECK;

#endif
