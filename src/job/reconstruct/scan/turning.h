/* turning.h: how the views of a scan turn about the object. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_TURNING_H
#define TESS_JOB_RECONSTRUCT_SCAN_TURNING_H

#include "job/reconstruct/problem/problem.h"

typedef struct tess_turning {
    double
        degrees; /* between the first view and others, or of a sinogram between all; a volume's are 180 at most */
    bool turns; /* by a quarter of a turn or more */
    bool full;  /* of a volume: by all of it, about evenly */
    double
        roll; /* of a volume: how many rows the axis' perpendicular crosses on its way over all columns, as of a detector that is turned in its plane */
    double columns
        [2]; /* between which the views show the axis; a sinogram whose centre is not known: its middle part */
} tess_turning;

tess_turning tess_problem_turning(const tess_problem *problem);

#endif
