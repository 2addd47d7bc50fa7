/* margins.h: pictures inside larger ones. */
#ifndef TESS_JOB_RECONSTRUCT_PLAN_MARGINS_H
#define TESS_JOB_RECONSTRUCT_PLAN_MARGINS_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Adds the share of measurement i in the mean of the blurs to the middle of the image `mean` (the first one replaces
 * it). */
tess_status tess_margins_add(tess_workspace *workspace, const tess_problem *problem, int64_t i, void *mean,
                             tess_error *error) TESS_MUST_CHECK;
/* Sets everything around the middle of `image` to the nearest pixel in the middle, or to black if it was. */
tess_status tess_margins_fill(tess_workspace *workspace, const tess_problem *problem, void *image,
                              tess_error *error) TESS_MUST_CHECK;
/* Copies `count` rows of the picture from `first` on, without margins, from a vector of the workspace to the host. */
tess_status tess_margins_rows(tess_workspace *workspace, const tess_problem *problem, const void *vector,
                              int64_t first, int64_t count, float *to, tess_error *error) TESS_MUST_CHECK;

#endif
