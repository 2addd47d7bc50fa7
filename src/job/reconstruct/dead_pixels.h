/* dead_pixels.h: detector pixels that have one value in all views, whatever the object. Left as they are, they become rings
 * that are brighter than the object, and a range that fits them. */
#ifndef TESS_JOB_DEAD_PIXELS_H
#define TESS_JOB_DEAD_PIXELS_H

#include "job/reconstruct/problem.h"

/* Reads the views once and lists the dead pixels in problem->dead, unless that was done. `values` has room for a view. */
tess_status tess_problem_find_dead(tess_problem *problem, float *values, tess_error *error) TESS_MUST_CHECK;
/* The same, with memory of its own for a view. */
tess_status tess_problem_find_dead_first(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Counted memory that this needs while it reads. */
size_t tess_problem_dead_bytes(const tess_problem *problem);
/* Fills the dead pixels of a view, if they are known. */
void tess_dead_pixels_fill(const tess_problem *problem, float *values);

#endif
