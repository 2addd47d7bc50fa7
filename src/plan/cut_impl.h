/* cut_impl.h: a plan in the making, between cut.c (which cut), cut_list.c (the cuts there are) and cut_bytes.c (what a
 * cut takes). */
#ifndef TESS_PLAN_CUT_IMPL_H
#define TESS_PLAN_CUT_IMPL_H

#include "plan/cut.h"

enum { TESS_MOST_CUTS = 40 };

/* What a way of cutting one axis means, worked out once and then combined with every way of cutting the other. */
typedef struct axis_cost {
    tess_axis axis;
    double window, total; /* pixels: the largest window, and all of them */
    double io_bytes;      /* rows: the ring; columns: host scratch */
    double batch;         /* columns: windows in one run */
    bool host;            /* more rows than the host has room for */
} axis_cost;

/* Everything that choosing needs to know. */
typedef struct chooser {
    const tess_bound *bound;
    const tess_model_net *model;
    const tess_rates *rates;
    const tess_cut_request *request;
    int64_t grid, alignment, reach, padded_h, padded_w;
    double fixed_bytes, bytes_per_pixel; /* estimated: the line */
    double seconds_per_run, seconds_per_pixel;
    bool calibrated;
    axis_cost rows[TESS_MOST_CUTS], cols[TESS_MOST_CUTS];
    int row_count, col_count;
} chooser;

/* The halo of an axis of `size` pixels in so many tiles. */
int64_t tess_cut_halo(const chooser *c, int64_t size, int64_t tiles);
/* Tiles of at most these sizes; 0: the axis is not cut. */
void tess_cut_by_tile(const chooser *c, int64_t tile_h, int64_t tile_w, tess_cut_plan *choice);
/* The most windows of one size side by side: a larger batch could never be filled. */
int64_t tess_cut_longest_run(const tess_axis *cols);
/* Lists the ways of cutting both axes. */
void tess_cut_list(chooser *c);
/* The cut with the least computed area among those whose estimated bytes are at most `most`; false without one. */
bool tess_cut_best(const chooser *c, double most, tess_cut_plan *choice, double *estimate);
/* The cut that takes the least bytes, as they are measured. */
tess_status tess_cut_least(const chooser *c, tess_cut_plan *choice, tess_error *error) TESS_MUST_CHECK;

/* All bytes of a cut, exactly, and its seconds. */
tess_status tess_cut_measure(const chooser *c, tess_cut_plan *choice, tess_error *error) TESS_MUST_CHECK;
/* What a limit must be for a choice that was measured. */
uint64_t tess_cut_total(const tess_cut_request *request, const tess_cut_plan *choice);

#endif
