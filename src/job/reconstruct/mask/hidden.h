/* hidden.h: values of measured blurs that say nothing about the picture: missing ones, highlights that are cut off, and a frame that
 * was set after the blur. The data term leaves them out, as it leaves out what lies beyond the border (physics/convolve.h). They are found from the
 * file before the memory is planned, because the masks are part of the plan; pictures without any cost one more look at the file. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_HIDDEN_H
#define TESS_JOB_RECONSTRUCT_MASK_HIDDEN_H

#include "job/reconstruct/problem/problem.h"

/* Sets problem->hidden, and says what was found. All ranks look at the whole file. */
tess_status tess_problem_find_hidden(tess_problem *problem, const tess_common *common,
                                     tess_error *error) TESS_MUST_CHECK;
/* Why a value of row `y` of the file is hidden, in units of the solver as it is read; TESS_HIDDEN_REASONS: it is not. */
tess_hidden_reason tess_hidden_why(const tess_problem *problem, int64_t y, int64_t column, float value);
/* The same without regard to the other values of a JPEG's square. */
tess_hidden_reason tess_hidden_own(const tess_problem *problem, int64_t y, int64_t column, float value);
/* Its weight in the data term: 0, 1, or less than 1 if it only lies in a hidden square of a JPEG. */
float tess_hidden_weight(const tess_problem *problem, int64_t y, int64_t column, float value);
/* Whether anything is hidden: the preconditioner does not know of it. */
bool tess_hidden_any(const tess_problem *problem);
/* The range of the solver's pictures: light that was cut off lies beyond that of the results. */
double tess_hidden_low(const tess_problem *problem);
double tess_hidden_high(const tess_problem *problem);

#endif
