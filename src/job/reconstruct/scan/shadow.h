/* shadow.h: what the columns of a sinogram say about matter outside of the image.
 *
 * The model says that a ray that misses the image sees nothing. If such rays see something, the solver would put it into
 * the image, and a region of interest would be wrong everywhere. Then the image is computed larger than asked, and cropped.
 * An object that is wider than the detector shows in its outer columns. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_SHADOW_H
#define TESS_JOB_RECONSTRUCT_SCAN_SHADOW_H

#include "job/reconstruct/problem/problem.h"
#include "job/reconstruct/scan/background.h"

typedef struct tess_shadow_bin tess_shadow_bin;
typedef struct tess_shadow_seen tess_shadow_seen;

typedef struct tess_shadow {
    const tess_problem *problem;
    int64_t count;
    tess_shadow_bin *bins;       /* by the distance from the column that sees the middle of the image */
    int64_t sectors;             /* of half a turn */
    tess_shadow_seen *by_sector; /* [distance][sector]: what is seen outside of the image */
    tess_background background;
    double edge[2]; /* sums of the outer columns, on the left and on the right */
} tess_shadow;

/* Whether some column sees nothing of the image in some view; false if there is a view that sees nothing at all. */
bool tess_shadow_misses(const tess_problem *problem);

tess_status tess_shadow_open(const tess_problem *problem, tess_shadow *shadow,
                             tess_error *error) TESS_MUST_CHECK;
/* Adds a view, in any unit. */
void tess_shadow_add(tess_shadow *shadow, int64_t view, const float *values);
/* Mean of the outer columns on one side, as a share of the largest mean. */
double tess_shadow_edge(const tess_shadow *shadow);
/* What all rays hold beside the object; *share: of the largest mean. */
double tess_shadow_background(const tess_shadow *shadow, double *share);
/* Pixels that the image needs on each side for all that is seen outside; 0: none. *share: of what is seen there. */
int64_t tess_shadow_margin(const tess_shadow *shadow, double *share);
void tess_shadow_close(tess_shadow *shadow);

/* Reads the measurements, if some columns miss the image, and sets the margin of the problem. */
tess_status tess_problem_look_outside(tess_problem *problem, tess_error *error) TESS_MUST_CHECK;

#endif
