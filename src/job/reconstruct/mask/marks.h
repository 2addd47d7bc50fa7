/* marks.h: values that mark missing data without saying so: -9999, 1e20, or 0 where all others are near 30000. As light they would set
 * the range and the least noise, and nothing else of the picture would be left. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_MARKS_H
#define TESS_JOB_RECONSTRUCT_MASK_MARKS_H

#include "job/reconstruct/problem/problem.h"

/* Sets problem->hidden.marks, which are read as NaN from then on, and says what was found. */
tess_status tess_problem_find_marks(tess_problem *problem, const tess_common *common,
                                    tess_error *error) TESS_MUST_CHECK;

#endif
