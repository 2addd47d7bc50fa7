/* lost_views.h: views that were not exposed, or without the object: unlike those before and after them, such a view sees
 * nothing at all, or no light. One of them ruins a scan; without it little is missing. */
#ifndef TESS_JOB_RECONSTRUCT_SCAN_LOST_VIEWS_H
#define TESS_JOB_RECONSTRUCT_SCAN_LOST_VIEWS_H

#include "job/reconstruct/problem/problem.h"

/* Of all values of a view. */
typedef struct tess_view_stats {
    double mean, deviation;
} tess_view_stats;

/* NaN does not count. */
tess_view_stats tess_view_stats_of(const float *values, int64_t count);
/* Lists the lost ones of problem->count views in problem->lost, and removes their angles or vectors from the problem. */
tess_status tess_problem_leave_out_lost(tess_problem *problem, const tess_view_stats *stats,
                                        tess_error *error) TESS_MUST_CHECK;

#endif
