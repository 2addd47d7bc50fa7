/* problem_data.h: truths and measurements: drawn and simulated, or read; and what is found in them. */
#ifndef TESS_JOB_PROBLEM_DATA_H
#define TESS_JOB_PROBLEM_DATA_H

#include "job/reconstruct/problem.h"
#include "job/reconstruct/workspace.h"

/* Fills the truth of the workspace; and its measurements, which get noise where they are simulated. */
tess_status tess_problem_truth(const tess_problem *problem, tess_workspace *workspace,
                               tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_measure(tess_problem *problem, tess_workspace *workspace, double noise,
                                 uint64_t seed, tess_error *error) TESS_MUST_CHECK;

#endif
