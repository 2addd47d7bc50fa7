/* reconstructor.h: a reconstruction from arrays, between reconstructor_problem.c (what is to be solved) and reconstructor.c
 * (plan and run). */
#ifndef TESS_JOB_RECONSTRUCTOR_H
#define TESS_JOB_RECONSTRUCTOR_H

#include "job/library/library.h"
#include "job/reconstruct/problem.h"

/* What the settings say is to be solved; arrays are copied. Clear it also when this failed. */
tess_status tess_reconstructor_problem(const tess_reconstructor_settings *settings, tess_problem *problem,
                                       tess_error *error) TESS_MUST_CHECK;
/* The measurements as an image. */
void tess_reconstructor_extent(const tess_problem *problem, int64_t sizes[4]);

#endif
