/* mistakes.h: what the views say about entries of the problem file that are wrong or missing. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_MISTAKES_H
#define TESS_JOB_RECONSTRUCT_SCAN_MISTAKES_H

#include "job/reconstruct/problem/problem.h"
#include "physics/centre.h"

/* Sets `transmission` and, of a volume, `axis_off` of the problem from the mean of all its views. */
void tess_scan_mistakes(tess_problem *problem, const float *mean);
/* Sets `axis_off` of a sinogram whose centre is `seen`, which is not used. */
void tess_scan_doubt_centre(tess_problem *problem, const tess_centre *seen);

#endif
