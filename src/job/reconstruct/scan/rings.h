/* rings.h: errors of the detector's pixels that are the same in all views, which become rings in the image.
 *
 * A view does not show them, but the solver does: what a denoised image leaves of the measurements, averaged over the
 * views, is the error of each pixel. It needs no smoothness of the object, except where the object is symmetric about
 * the axis: its edges are at the same columns in all views, and what the image lacks of them looks like an error of
 * two columns, one on each side. So pixels are proved wrong by what differs between the two sides of the axis. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_RINGS_H
#define TESS_JOB_RECONSTRUCT_SCAN_RINGS_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Whether errors of pixels are looked for: in measured scans of enough views and columns whose axis is known. */
bool tess_rings_wanted(const tess_problem *problem);
/* Numbers of `rings` in the workspace's host memory; 0: none are wanted. */
int64_t tess_rings_values(const tess_problem *problem);
/* Floats that it needs in each of the two rows on the host: some views, at least one. */
int64_t tess_rings_row(const tess_problem *problem);

/* Collective: compares the image `x` with the measurements, and subtracts the pixels' errors from these in each row of the
 * detector that has some. `level` is the root mean square of all that was subtracted so far, in the units of the
 * solver; 0: nothing. */
tess_status tess_rings_subtract(const tess_problem *problem, tess_workspace *workspace, const void *x,
                                double *level, tess_error *error) TESS_MUST_CHECK;
/* Says that pixels' errors of this level were subtracted, if it is not 0. A result that does not fit its views has them for another
 * reason. */
void tess_rings_note(const tess_problem *problem, double level, bool fits, const tess_common *common);

#endif
