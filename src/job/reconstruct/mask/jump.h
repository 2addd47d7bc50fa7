/* jump.h: how far a blurred value can lie from the one beside it. */
#ifndef TESS_JOB_RECONSTRUCT_MASK_JUMP_H
#define TESS_JOB_RECONSTRUCT_MASK_JUMP_H

#include "job/reconstruct/look/sampled_kernel.h"

enum { TESS_JUMP_SIDES = 4 }; /* to the right, left, below, above */

/* Of a picture between 0 and 1: the largest value beside one of at most `tolerance` (or, upside down, how far one can lie below a
 * neighbour of at least 1 - tolerance). */
typedef struct tess_jumps {
    double from_end[TESS_JUMP_SIDES];
} tess_jumps;

tess_status tess_jumps_of(const tess_sampled_kernel *kernel, double tolerance, tess_jumps *jumps,
                          tess_error *error) TESS_MUST_CHECK;

#endif
