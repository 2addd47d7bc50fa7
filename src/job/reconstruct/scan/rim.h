/* rim.h: what a result leaves of the rays at the rim of a volume. An object that reaches out of it by a voxel or two is seen
 * by few rays that miss the volume (shadow3.h), but by more that run along its faces, and no volume explains what these see. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_RIM_H
#define TESS_JOB_RECONSTRUCT_SCAN_RIM_H

#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/workspace.h"

/* Collective: reads the measurements and the residual, which holds the views of the result minus the measured ones. `share` is
 * what rays along the faces see beyond the result, as a share of the largest, if the object reaches out of the volume;
 * otherwise 0. */
tess_status tess_scan_judge_rim(const tess_problem *problem, tess_workspace *workspace, double *share,
                                tess_error *error) TESS_MUST_CHECK;
void tess_scan_rim_note(const tess_problem *problem, double share, const tess_common *common);

#endif
