/* reconstructor.h: a reconstruction from arrays, shared by reconstructor_problem.c (the problem) and reconstructor.c
 * (plan and run). */
#ifndef TESS_JOB_RECONSTRUCTOR_H
#define TESS_JOB_RECONSTRUCTOR_H

#include "job/library/library.h"
#include "job/reconstruct/problem/problem.h"

/* Makes the problem from the settings; copies arrays. Clear it also if this fails. */
tess_status tess_reconstructor_problem(const tess_reconstructor_settings *settings, tess_problem *problem,
                                       tess_error *error) TESS_MUST_CHECK;
/* The sizes of the measurements as an image. */
void tess_reconstructor_extent(const tess_problem *problem, int64_t sizes[4]);

#endif
