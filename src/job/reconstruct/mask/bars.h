/* bars.h: bars at the ends of a picture, among the places that may belong to a frame. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_BARS_H
#define TESS_JOB_RECONSTRUCT_MASK_BARS_H

#include "job/reconstruct/problem/problem.h"

/* `runs` has, of each row, the pixels at its left and right end that have the frame's value. Leaves only those of bars: rows and columns at
 * the picture's ends that have it from end to end. Returns their pixels. */
int64_t tess_bars_keep(const tess_problem *problem, int64_t *runs);

#endif
