/* data.h: truths and measurements, simulated or read from files, and what is found in them. */
#ifndef TESS_JOB_RECONSTRUCT_PROBLEM_DATA_H
#define TESS_JOB_RECONSTRUCT_PROBLEM_DATA_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Fill the truth and the measurements of the workspace; simulated measurements get noise. */
tess_status tess_problem_truth(const tess_problem *problem, tess_workspace *workspace,
                               tess_error *error) TESS_MUST_CHECK;
tess_status tess_problem_measure(tess_problem *problem, tess_workspace *workspace, double noise,
                                 uint64_t seed, tess_error *error) TESS_MUST_CHECK;
/* Memory while the truth is made of an image that is resized; otherwise 0. */
size_t tess_problem_resize_bytes(const tess_problem *problem);
/* Adds noise to a measurement in the memory of the device. */
tess_status tess_problem_add_noise(const tess_problem *problem, tess_workspace *workspace, void *measurement,
                                   double level, uint64_t seed, tess_error *error) TESS_MUST_CHECK;

/* The share of the rays that have no count. */
double tess_problem_starved_share(const tess_problem *problem);
/* Whether the outer columns of a sinogram, which was read, say that the object is wider than the detector. */
bool tess_problem_truncated(const tess_problem *problem);
/* Whether more is computed than is shown. */
bool tess_problem_enlarged(const tess_problem *problem);

#endif
