/* stripes.h: noise that rows or columns of a measured blur have in common, as the amplifiers of a camera make it. It is not white, and
 * the inverse of a blur multiplies it across the stripes as it does white noise, without a mean that would hide it. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_STRIPES_H
#define TESS_JOB_RECONSTRUCT_LOOK_STRIPES_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Collective. The largest level of stripes of all blurs, in units of the solver; 0: there are none. */
tess_status tess_problem_find_stripes(const tess_problem *problem, tess_workspace *workspace, double *level,
                                      tess_error *error) TESS_MUST_CHECK;

#endif
