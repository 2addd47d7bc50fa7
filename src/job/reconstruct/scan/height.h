/* height.h: whether the object of a cone-beam scan is higher than its volume. Rays near the top of a volume leave it there:
 * they meet it on one side, so that they do not count as rays that miss it, but what they see beyond is computed
 * into the slices at the end, which become far too bright. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_HEIGHT_H
#define TESS_JOB_RECONSTRUCT_SCAN_HEIGHT_H

#include "job/reconstruct/problem/problem.h"

typedef struct tess_heights tess_heights; /* owned by the caller: tess_heights_destroy */

/* Whether rays of the first or last row leave the volume at its top or bottom. */
bool tess_heights_matter(const tess_problem *problem);
tess_status tess_heights_create(const tess_problem *problem, tess_heights **out,
                                tess_error *error) TESS_MUST_CHECK;
void tess_heights_add(tess_heights *heights, int64_t view, const float *values);
/* Slices that are missing above and below, and what is seen there as a share of the largest. */
int64_t tess_heights_missing(const tess_heights *heights, double *share);
void tess_heights_destroy(tess_heights *heights);

#endif
