/* data_rows.h: reads the rows of a truth or of blurs into memory, as values of the solver. */
#ifndef TESS_JOB_RECONSTRUCT_PROBLEM_DATA_ROWS_H
#define TESS_JOB_RECONSTRUCT_PROBLEM_DATA_ROWS_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

/* Rows of a file, and where their values go. */
typedef struct tess_data_rows {
    const tess_problem *problem;
    tess_workspace *workspace;
    const char *path;
    tess_extent extent;   /* as planned */
    float *to;            /* in host or device memory */
    bool device;          /* blurs one above another: all rows are looked at, and those of this rank kept */
    bool numbers;         /* integers are not divided by their type's maximum */
    bool holes;           /* missing values are allowed, and become NaN */
    double *rounded;      /* is set to the most that 32-bit floats change a value by; NULL: not needed */
    int64_t first, count; /* only these rows are taken; count 0: all */
    int64_t from, part;   /* of each row, `part` samples from this one; part 0: all */
} tess_data_rows;

tess_status tess_data_rows_read(const tess_data_rows *rows, tess_error *error) TESS_MUST_CHECK;

#endif
