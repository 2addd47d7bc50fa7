/* finite.h: checks that the values of a file are finite. All bad values are counted before the file is refused, so
 * that the message says how many there are and where the first is. Missing values are NaN (values.h). */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_FINITE_H
#define TESS_JOB_RECONSTRUCT_LOOK_FINITE_H

#include "job/reconstruct/problem/problem.h"

/* Initialize with {0}. */
typedef struct tess_bad_values {
    int64_t nan, infinite;
    int64_t row, at; /* of the first */
} tess_bad_values;

/* Counts the bad values of one row of the file. */
void tess_bad_values_count(tess_bad_values *bad, int64_t row, const float *values, int64_t count);
/* Fails if there were any. `extent` is that of the file; for a volume the message names the position by three
 * indices. */
tess_status tess_bad_values_check(const tess_bad_values *bad, const char *path, tess_extent extent,
                                  bool volume, tess_error *error) TESS_MUST_CHECK;

#endif
