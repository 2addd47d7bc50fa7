/* file_rows.h: the rows of measured blurs from their file, before any memory is planned. */
#ifndef TESS_JOB_RECONSTRUCT_PROBLEM_FILE_ROWS_H
#define TESS_JOB_RECONSTRUCT_PROBLEM_FILE_ROWS_H

#include "job/reconstruct/problem/problem.h"

/* Row `y`, counted through all blurs; `values` may be changed. */
typedef tess_status (*tess_file_row_fn)(void *user, int64_t y, float *values, tess_error *error);
/* Calls `take` for each row of the file, in the units in which the job will read it. */
tess_status tess_problem_file_rows(const tess_problem *problem, tess_file_row_fn take, void *user,
                                   tess_error *error) TESS_MUST_CHECK;

#endif
