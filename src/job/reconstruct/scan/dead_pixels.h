/* dead_pixels.h: detector pixels that see nothing of the object: no light, one value in all views, or values of their own.
 * Left as they are, they become rings that are brighter than the object, and a range that fits them. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_DEAD_PIXELS_H
#define TESS_JOB_RECONSTRUCT_SCAN_DEAD_PIXELS_H

#include "job/reconstruct/problem/problem.h"

/* Reads the views, before anything else does, and lists the dead pixels in problem->dead; lost views (lost_views.h) are
 * removed from the problem. */
tess_status tess_problem_find_faults(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Fills the dead pixels of a view, if they are known. */
void tess_dead_pixels_fill(const tess_problem *problem, float *values);

#endif
