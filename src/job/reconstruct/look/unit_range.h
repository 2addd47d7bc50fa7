/* unit_range.h: whether the values of measured blurs are those of an image of [0, 1] with noise. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_UNIT_RANGE_H
#define TESS_JOB_RECONSTRUCT_LOOK_UNIT_RANGE_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Collective. `extremes` are those of all measured values. */
tess_status tess_problem_looks_like_one(const tess_problem *problem, tess_workspace *workspace,
                                        const tess_extremes *extremes, bool *is_one,
                                        tess_error *error) TESS_MUST_CHECK;

#endif
