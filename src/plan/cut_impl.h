/* cut_impl.h: a plan in the making, between cut.c (which cut), cut_list.c (the cuts there are), cut_bytes.c (what a cut
 * takes) and cut_words.c (what is said of it). */
#ifndef TESS_PLAN_CUT_IMPL_H
#define TESS_PLAN_CUT_IMPL_H

#include "plan/cut.h"

enum { TESS_MOST_CUTS = 40 };

/* What a way of cutting one axis means, worked out once and then combined with every way of cutting the others. */
typedef struct tess_cut_way {
    tess_axis axis;
    double window, total; /* pixels: the largest window, and all of them */
    double io_bytes;      /* rows: the ring; columns: host scratch */
    double batch;         /* columns: windows in one run; else 1 */
    bool over_host;       /* more rows than the host has room for */
} tess_cut_way;

/* Everything that choosing needs to know. */
typedef struct tess_cutter {
    const tess_bound *bound;
    const tess_model_net *model;
    const tess_rates *rates;
    const tess_cut_request *request;
    int64_t grid[TESS_SPATIAL], alignment[TESS_SPATIAL], reach[TESS_SPATIAL], padded[TESS_SPATIAL];
    double fixed_bytes, bytes_per_pixel; /* estimated, as a straight line in the pixels of a window */
    double seconds_per_run, seconds_per_pixel;
    bool calibrated;
    tess_cut_way ways[TESS_SPATIAL][TESS_MOST_CUTS];
    int way_count[TESS_SPATIAL];
} tess_cutter;

/* A walk through the cuts in the order of their estimates: start with {-INFINITY, -1}. */
typedef struct tess_cut_walk {
    double bytes;
    int index;
} tess_cut_walk;

/* Would no cut of the axis be exact, as the request wants it? */
bool tess_cut_never(const tess_cutter *c, int axis);
/* Cuts each axis into tiles of at most these sizes; 0: it is not cut. */
void tess_cut_by_tile(const tess_cutter *c, const int64_t tile[TESS_SPATIAL], tess_cut_plan *plan);
/* The most windows of one size side by side: a larger batch could never be filled. */
int64_t tess_cut_longest_run(const tess_axis *cols);
/* Lists the ways of cutting each axis. */
void tess_cut_list(tess_cutter *c);
/* The cut with the fewest computed pixels among those whose estimated bytes are at most `most`; false without one. */
bool tess_cut_best(const tess_cutter *c, double most, tess_cut_plan *plan, double *estimate);
/* The cut whose estimate follows the walk's last one; false when there are no more. */
bool tess_cut_next(const tess_cutter *c, tess_cut_walk *walk, tess_cut_plan *plan);

/* All bytes of a cut, exactly, and its seconds. */
tess_status tess_cut_measure(const tess_cutter *c, tess_cut_plan *plan, tess_error *error) TESS_MUST_CHECK;
/* The product over the axes of what `of` says of each. */
double tess_cut_pixels(const tess_cut_plan *plan, int64_t (*of)(const tess_axis *));
/* What a limit must be for a plan that was measured. */
uint64_t tess_cut_total(const tess_cut_request *request, const tess_cut_plan *plan);
/* Has the host room for the rows, where they stay there? */
bool tess_cut_host_fits(const tess_cut_request *request, const tess_cut_plan *plan);

/* Fill the plan's reason: nothing is cut; the tile was asked for; the cut was chosen. */
void tess_cut_say_whole(const tess_cutter *c, tess_cut_plan *plan);
void tess_cut_say_asked(const tess_cutter *c, tess_cut_plan *plan);
void tess_cut_say_chosen(const tess_cutter *c, tess_cut_plan *plan);

#endif
