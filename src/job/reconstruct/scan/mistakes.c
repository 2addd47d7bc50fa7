/* Light that passes an object is near 1 beside it and less behind it; line integrals are near 0 beside it.
 *
 * On a circle, a point of the object is seen as far to the left of the axis as to the right of it, in two views at the same
 * distance from the source. So where all of the object is seen in views that are spread evenly over a full turn, the centre
 * of mass of their sum is the column of the axis, wherever the object is. */
#include "job/reconstruct/scan/mistakes.h"

#include <math.h>

#include "job/reconstruct/scan/turning.h"

enum { EDGE = 2, LEAST_COLUMNS = 16, LEAST_VIEWS = 12 };
static const double NEAR_ONE = 0.1, LESS = 0.05; /* of the light beside the object; behind it, at least */
static const double FAINT = 0.05;  /* of the largest column: at the edges, all of the object is seen */
static const double EVENLY = 0.02; /* length of the mean direction */
static const double JITTER = 1;    /* columns within which all views show the axis */
static const double FAR =
    3; /* columns of a sinogram: few opposite views or centres of mass are less certain */
static const double AGREED = 0.1; /* unless many such views, or the spectrum of all, have a smaller error: */
/* Then these, or so many errors. Columns with errors move the axis that the spectrum shows. */
static const double SURE_OF_PAIRS = 0.1, SURE_OF_SPECTRUM = 0.3, TIMES = 5;
static const double SLIGHT = 1; /* columns of a volume */

/* The mean of a column over all rows. */
static double column_of(const tess_problem *p, const float *mean, int64_t column)
{
    double sum = 0;
    for (int64_t r = 0; r < p->rows; r++)
        sum += (double)mean[r * p->columns + column];
    return sum / (double)p->rows;
}

/* The outer columns of a side: 0 is the left one. */
static double edge_of(const tess_problem *p, const float *mean, int side)
{
    double sum = 0;
    for (int64_t i = 0; i < EDGE; i++)
        sum += column_of(p, mean, side ? p->columns - 1 - i : i);
    return sum / EDGE;
}

static bool is_transmission(const tess_problem *p, const float *mean)
{
    double least = INFINITY, most = -INFINITY;
    for (int64_t i = 0; i < p->columns; i++) {
        const double is = column_of(p, mean, i);
        least = fmin(least, is);
        most = fmax(most, is);
    }
    for (int side = 0; side < 2; side++)
        if (!(fabs(edge_of(p, mean, side) - 1) < NEAR_ONE))
            return false;
    return most < 1 + NEAR_ONE && least > 0 && least < 1 - LESS - NEAR_ONE;
}

/* Whether the views are spread evenly over full turns. */
static bool is_even(const tess_problem *p)
{
    double sum[2] = {0, 0};
    for (int64_t i = 0; i < p->count; i++) {
        const double *view = p->vectors + 12 * i, length = hypot(view[0], view[1]);
        for (int k = 0; k < 2; k++)
            sum[k] += length > 0 ? view[k] / length / (double)p->count : 1;
    }
    return hypot(sum[0], sum[1]) < EVENLY;
}

static void doubt_axis(tess_problem *p, const float *mean)
{
    const tess_turning t = tess_problem_turning(p);
    double sum = 0, moment = 0, most = 0;
    for (int64_t i = 0; i < p->columns; i++) {
        const double is = column_of(p, mean, i);
        sum += is;
        moment += (double)i * is;
        most = fmax(most, is);
    }
    const double off = moment / sum - 0.5 * (t.columns[0] + t.columns[1]);
    const bool all = p->edge_rows < FAINT && fabs(edge_of(p, mean, 0)) < FAINT * most &&
                     fabs(edge_of(p, mean, 1)) < FAINT * most;
    if (t.full && all && is_even(p) && t.columns[1] - t.columns[0] < JITTER && fabs(off) >= SLIGHT)
        p->axis_off = off;
}

void tess_scan_mistakes(tess_problem *p, const float *mean)
{
    if (p->columns < LEAST_COLUMNS || p->count < LEAST_VIEWS)
        return;
    p->transmission = !p->counts && is_transmission(p, mean);
    if (p->physics == TESS_PHYSICS_CONE && !p->transmission)
        doubt_axis(p, mean);
}

void tess_scan_doubt_centre(tess_problem *p, const tess_centre *seen)
{
    const double off = seen->column - p->centre;
    const bool sure = (seen->pairs || seen->spectrum) && seen->within < AGREED;
    if (fabs(off) >=
        (sure ? fmax(seen->pairs ? SURE_OF_PAIRS : SURE_OF_SPECTRUM, TIMES * seen->within) : FAR))
        p->axis_off = off;
}
