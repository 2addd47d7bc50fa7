/* zingers3.h: single values of the views of a volume that are far from those beside them, as zingers.h of sinograms. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_ZINGERS3_H
#define TESS_JOB_RECONSTRUCT_SCAN_ZINGERS3_H

#include "job/reconstruct/problem/problem.h"

/* Reads the views, three of which are kept, and lists such values in problem->zingers. */
tess_status tess_problem_find_zingers3(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;

#endif
