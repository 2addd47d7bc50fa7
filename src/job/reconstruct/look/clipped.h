/* clipped.h: whether the largest value of blurs is one at which light was cut off. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_CLIPPED_H
#define TESS_JOB_RECONSTRUCT_LOOK_CLIPPED_H

#include "job/reconstruct/problem/problem.h"

/* Initialize with {.problem = ...}; close it. */
typedef struct tess_clipped {
    const tess_problem *problem;
    double most;         /* the largest value */
    int64_t count;       /* values that have it */
    int64_t inner;       /* those among them that are surrounded by such values */
    unsigned char *rows; /* of three rows: whether a value is the largest; owned */
} tess_clipped;

void tess_clipped_close(tess_clipped *clipped);
/* First look: each row of the file. */
void tess_clipped_add(tess_clipped *clipped, const float *values);
/* Whether a second look at each row can find something. */
bool tess_clipped_possible(const tess_clipped *clipped);
tess_status tess_clipped_open(tess_clipped *clipped, tess_error *error) TESS_MUST_CHECK;
void tess_clipped_row(tess_clipped *clipped, int64_t y, const float *values);
bool tess_clipped_found(const tess_clipped *clipped);

#endif
