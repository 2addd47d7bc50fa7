/* contradiction.h: blurs that no picture explains together: kernels in the wrong order, or frames that are not aligned. Each alone fits some
 * picture, and in the sum over all blurs what they differ by cancels (run/settle.h), so they are compared in pairs (crossed.h). */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_CONTRADICTION_H
#define TESS_JOB_RECONSTRUCT_LOOK_CONTRADICTION_H

#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/workspace.h"

/* Bytes of the host's block that exists while measured blurs are compared; 0: they are not. */
size_t tess_problem_contradiction_bytes(const tess_problem *problem);
/* Collective. Sets `contradiction` and `contradicts` of the problem, and says so. The noise must be known. */
tess_status tess_problem_find_contradictions(tess_problem *problem, const tess_recipe *recipe,
                                             tess_workspace *workspace, const tess_common *common,
                                             tess_error *error) TESS_MUST_CHECK;

#endif
