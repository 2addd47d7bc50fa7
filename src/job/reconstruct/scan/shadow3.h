/* shadow3.h: what the views of a volume say about matter outside of it, and outside of the detector; as shadow.h does for
 * sinograms. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_SHADOW3_H
#define TESS_JOB_RECONSTRUCT_SCAN_SHADOW3_H

#include "job/reconstruct/problem/problem.h"

/* Whether some rays of a sound geometry miss the volume. */
bool tess_shadow3_misses(const tess_problem *problem);
/* Reads the views and, if rays that miss the volume see something, sets problem->outside, the volume that they need, and
 * the margins, unless such a volume is much larger or would hold the source. */
tess_status tess_problem_look_around(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Sets the means of the outer columns and rows as a share of the largest, from the mean of all views. */
void tess_shadow3_edges(tess_problem *problem, const float *mean);

#endif
