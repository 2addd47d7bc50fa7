/* fit.h: how far the views of a result lie from those that were measured. Angles that are wrong by a factor, or turn in the other sense,
 * give a picture whose views are others. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_FIT_H
#define TESS_JOB_RECONSTRUCT_SCAN_FIT_H

#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/run.h"
#include "job/reconstruct/run/workspace.h"

/* Collective: compares the result in vectors[0] with the views of a measured scan, after some iterations that solve for the data, and
 * overwrites the residual. Sets in the outcome `misfit`, which is how many times what noise explains they differ by, if that is more than
 * right angles leave, and `rim` (rim.h). */
tess_status tess_scan_judge(const tess_problem *problem, const tess_recipe *recipe, tess_workspace *workspace,
                            tess_outcome *outcome, tess_error *error) TESS_MUST_CHECK;
void tess_scan_misfit_note(const tess_problem *problem, double misfit, const tess_common *common);

#endif
