/* background.h: the same value in all rays beside the object.
 *
 * Line integrals are 0 where nothing is. A "flat" that is brighter than the light of the scan adds one value to all of them,
 * and so does an offset: the outer columns on both sides then show it in all views. An object that is wider than the
 * detector differs there from view to view, or from column to column. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_BACKGROUND_H
#define TESS_JOB_RECONSTRUCT_SCAN_BACKGROUND_H

#include "job/reconstruct/problem/problem.h"

typedef struct tess_background_side {
    double sum, squares; /* over views, of the mean of the outer columns */
    double slope;        /* of the two outermost less the two beside them */
    double noise;        /* of squared differences of neighbouring columns */
} tess_background_side;

typedef struct tess_background {
    int64_t columns, views;
    tess_background_side side[2]; /* left and right */
} tess_background;

/* Adds a view of a sinogram, in any unit. */
void tess_background_add(tess_background *background, int64_t columns, const float *values);
/* The value that all rays have more than they should; 0: none is certain. `largest`: the largest mean of a column. */
double tess_background_value(const tess_background *background, double largest);
/* Says it, if there is one. */
bool tess_background_note(const tess_problem *problem, const tess_common *common);

#endif
