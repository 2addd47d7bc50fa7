/* clipped.h: whether the largest or the least value of blurs is one at which light was cut off. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_CLIPPED_H
#define TESS_JOB_RECONSTRUCT_MASK_CLIPPED_H

#include "job/reconstruct/mask/jump.h"

/* Initialize with {.problem = ..., .dark = ...}; close it. */
typedef struct tess_clipped {
    const tess_problem *problem;
    bool dark;          /* the least value is looked at */
    double end;         /* that value */
    double other;       /* the one at the other end */
    int64_t all, count; /* values; those at the end */
    int64_t close;      /* values within a JPEG's waves of the range's end */
    int64_t near;       /* values within a JPEG's waves of the end, outside of a frame */
    int64_t inner;      /* those among them that are surrounded by such values */
    int64_t mostly;     /* those that are mostly surrounded */
    int64_t rim,
        steep; /* values beside areas of them; those that no kernel allows beside light that was not cut off */
    int64_t falls;         /* places where values fall from an area */
    double fall, bend;     /* sums over them: by how much, and by how much faster at their end */
    tess_jumps jumps;      /* of the blur that is looked at */
    unsigned char *at_end; /* of three rows: whether a value is at the end, or near it; owned */
    float *rows;           /* the same rows; owned */
} tess_clipped;

tess_status tess_clipped_open(tess_clipped *clipped, tess_error *error) TESS_MUST_CHECK;
void tess_clipped_close(tess_clipped *clipped);
/* First look: each row of the file. */
void tess_clipped_add(tess_clipped *clipped, const float *values);
/* Whether there are so few values at the end of the file's range that all of them were cut off; this needs no second look. */
bool tess_clipped_few(const tess_clipped *clipped);
/* How far below the end few values lie that were cut off: a JPEG's waves, unless a bright sky is there as well. */
double tess_clipped_waves(const tess_clipped *clipped);
/* Whether a second look at each row, in which a frame is known, can find something. */
bool tess_clipped_possible(const tess_clipped *clipped);
tess_status tess_clipped_row(tess_clipped *clipped, int64_t y, const float *values,
                             tess_error *error) TESS_MUST_CHECK;
bool tess_clipped_found(const tess_clipped *clipped);

#endif
