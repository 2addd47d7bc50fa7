/* zingers.h: single values of a sinogram that are far from those beside them in column and view: gamma rays that hit the
 * detector, and rays of which nothing was counted. Each becomes a streak across the image. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_ZINGERS_H
#define TESS_JOB_RECONSTRUCT_SCAN_ZINGERS_H

#include "job/reconstruct/problem/problem.h"

/* Reads the views and lists such values in problem->zingers; for volumes see zingers3.h. */
tess_status tess_problem_find_zingers(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Fills those of a view, counted as in the file. */
void tess_zingers_fill(const tess_problem *problem, int64_t view, float *values);

#endif
