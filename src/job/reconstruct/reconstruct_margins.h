/* reconstruct_margins.h: pictures that are seen inside larger ones. */
#ifndef TESS_JOB_RECONSTRUCT_MARGINS_H
#define TESS_JOB_RECONSTRUCT_MARGINS_H

#include "job/reconstruct/problem.h"
#include "job/reconstruct/workspace.h"

/* The share of measurement i in the mean of the blurs, added to the middle of the image `mean` (the first one is kept). */
tess_status tess_margins_add(tess_workspace *workspace, const tess_problem *problem, int64_t i, void *mean,
                             tess_error *error) TESS_MUST_CHECK;
/* Everything around the middle of `image` becomes what its nearest pixel in there is. */
tess_status tess_margins_fill(tess_workspace *workspace, const tess_problem *problem, void *image,
                              tess_error *error) TESS_MUST_CHECK;
/* `count` rows of the picture from `first` on, without margins, from a vector of the workspace to the host. */
tess_status tess_margins_rows(tess_workspace *workspace, const tess_problem *problem, const void *vector,
                              int64_t first, int64_t count, float *to, tess_error *error) TESS_MUST_CHECK;

#endif
