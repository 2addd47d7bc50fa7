/* cut_impl.h: a plan under construction, shared by cut.c (chooses the cut), cut_list.c (lists the cuts),
 * cut_bytes.c (their memory) and cut_words.c (their messages). */
#ifndef TESS_PLAN_CUT_IMPL_H
#define TESS_PLAN_CUT_IMPL_H

#include "plan/cut.h"

enum { TESS_MOST_CUTS = 40 };

/* One way of cutting one axis, computed once and then combined with every way of cutting the other axes. */
typedef struct tess_cut_way {
    tess_axis axis;
    double window, total; /* pixels: of the largest window, and of all windows */
    double io_bytes;      /* rows: the ring; columns: host scratch */
    double batch;         /* columns: windows in one run; else 1 */
    bool over_host;       /* needs more rows than the host has memory for */
} tess_cut_way;

/* All inputs of the choice. */
typedef struct tess_cutter {
    const tess_bound *bound;
    const tess_model_net *model;
    const tess_rates *rates;
    const tess_cut_request *request;
    int64_t grid[TESS_SPATIAL], alignment[TESS_SPATIAL], reach[TESS_SPATIAL], padded[TESS_SPATIAL];
    double fixed_bytes, bytes_per_pixel; /* estimate: a straight line in the pixels of a window */
    double seconds_per_run, seconds_per_pixel;
    tess_run_cost beyond_ops; /* the part of both that is not the sum of the ops */
    bool calibrated;
    tess_cut_way ways[TESS_SPATIAL][TESS_MOST_CUTS];
    int way_count[TESS_SPATIAL];
} tess_cutter;

/* Iterates over the cuts in the order of their estimates: start with {-INFINITY, -1}. */
typedef struct tess_cut_walk {
    double bytes;
    int index;
} tess_cut_walk;

/* True when the request wants an exact result and no cut of this axis can be exact. */
bool tess_cut_never(const tess_cutter *c, int axis);
/* Cuts each axis into tiles of at most these sizes; 0: not cut. */
void tess_cut_by_tile(const tess_cutter *c, const int64_t tile[TESS_SPATIAL], tess_cut_plan *plan);
/* The most windows of one size side by side: a larger batch could never be filled. */
int64_t tess_cut_longest_run(const tess_axis *cols);
/* Lists the ways of cutting each axis. */
void tess_cut_list(tess_cutter *c);
/* Finds the cut with the fewest computed pixels whose estimated bytes are at most `most`; false when there is
 * none. */
bool tess_cut_best(const tess_cutter *c, double most, tess_cut_plan *plan, double *estimate);
/* Finds the cut with the next estimate; false after the last. */
bool tess_cut_next(const tess_cutter *c, tess_cut_walk *walk, tess_cut_plan *plan);

/* Computes all bytes of a cut exactly, and its seconds. */
tess_status tess_cut_measure(const tess_cutter *c, tess_cut_plan *plan, tess_error *error) TESS_MUST_CHECK;
/* The product of `of` over the axes. */
double tess_cut_pixels(const tess_cut_plan *plan, int64_t (*of)(const tess_axis *));
/* The least limit for a measured plan. */
uint64_t tess_cut_total(const tess_cut_request *request, const tess_cut_plan *plan);
/* True when the host has memory for the rows, if they stay there. */
bool tess_cut_host_fits(const tess_cut_request *request, const tess_cut_plan *plan);

/* Set the plan's reason: nothing is cut; the user gave the tile; the planner chose the cut. */
void tess_cut_say_whole(const tess_cutter *c, tess_cut_plan *plan);
void tess_cut_say_asked(const tess_cutter *c, tess_cut_plan *plan);
void tess_cut_say_chosen(const tess_cutter *c, tess_cut_plan *plan);

#endif
