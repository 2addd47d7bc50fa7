/* crossed.h: blurs of one picture, each blurred by the other's kernel, at places all over the picture. Convolutions commute: from
 * y_i = k_i * x and y_j = k_j * x follows that k_j * y_i and k_i * y_j are the same, whatever the picture x is. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_CROSSED_H
#define TESS_JOB_RECONSTRUCT_LOOK_CROSSED_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/run/workspace.h"

enum {
    TESS_CROSSED_SIDE = 16,    /* of a place, in pixels */
    TESS_CROSSED_CHANNELS = 3, /* the most that are looked at, evenly */
    TESS_CROSSED_GRID = 6      /* the most places down and across */
};

/* The values of a kernel that are not zero. */
typedef struct tess_taps {
    int64_t count, *at; /* offsets in a patch; owned */
    float *value;       /* owned; the sum is 1 */
    double squares;     /* the sum of their squares */
} tess_taps;

/* Initialize with tess_crossed_open. */
typedef struct tess_crossed {
    const tess_problem *problem;
    tess_workspace *w;
    int64_t reach[2], room[2]; /* of all kernels, in rows and columns; from the first place to the last one */
    int64_t grid[2];
    int64_t channels, row, values; /* of a patch: floats in a row, and all */
    tess_block block;
    float *patches;    /* of each blur; NaN: hidden or cut off */
    float *blurred[2]; /* a place of two blurs */
    float *brightest;  /* of each blur; owned, as are its taps */
    tess_taps *taps;
} tess_crossed;

/* Bytes of the block while blurs are compared; 0: they cannot be, since no pixel is farther from the border than two kernels reach. */
size_t tess_crossed_bytes(const tess_problem *problem);
/* Collective. Close it also if this fails. Needs tess_crossed_bytes above 0. */
tess_status tess_crossed_open(tess_crossed *crossed, const tess_problem *problem, tess_workspace *workspace,
                              tess_error *error) TESS_MUST_CHECK;
void tess_crossed_close(tess_crossed *crossed);
/* Operations of comparing two blurs at one place. */
double tess_crossed_work(const tess_crossed *crossed, int64_t i, int64_t j);
/* Chooses up to `most` places down and across. */
void tess_crossed_choose(tess_crossed *crossed, int64_t most);
/* Collective: reads the patches around a place, which is counted from 0 along rows. */
tess_status tess_crossed_take(tess_crossed *crossed, int64_t place, tess_error *error) TESS_MUST_CHECK;
/* What two blurs differ by, in sums over values. */
typedef struct tess_difference {
    double square; /* of the differences, without the mean of each place and channel */
    double slope;  /* square of what a shift by one pixel would make of them, at most */
    double count;  /* of values */
} tess_difference;

/* Adds this place. */
void tess_crossed_add(const tess_crossed *crossed, int64_t i, int64_t j, tess_difference *difference);
/* The noise that second differences of a blur have at this place; negative: it is hidden. */
double tess_crossed_noise(const tess_crossed *crossed, int64_t i);

#endif
