/* colours.h: whether the network for colours suits the channels of measured blurs. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_COLOURS_H
#define TESS_JOB_RECONSTRUCT_LOOK_COLOURS_H

#include "job/reconstruct/problem/problem.h"

/* Sets problem->colours, for three channels of measured blurs. All ranks look at the whole file; hidden values must be known. */
tess_status tess_problem_find_colours(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;

#endif
