/* window_impl.h: the body of tess_windows, for the files of this room; plans.c: the plans of the shapes that were met last. */
#ifndef TESS_WINDOW_WINDOW_IMPL_H
#define TESS_WINDOW_WINDOW_IMPL_H

#include "window/window.h"

/* A network at one shape; prepared and captured by its first run. */
typedef struct tess_window_plan {
    const tess_bound *bound;
    const void *weights; /* that the graph was captured with */
    tess_plan_shape shape;
    tess_net_plan *plan; /* NULL: an empty place */
    tess_graph *graph;   /* NULL where the device needs none */
    bool prepared;
    uint64_t used; /* the turn of its last use */
} tess_window_plan;

struct tess_windows {
    tess_windows_settings settings;
    tess_block arena, workspace;
    tess_stream *capture;
    tess_window_plan *plans; /* settings.keep of them */
    uint64_t turn;           /* batches so far */
    int64_t shapes;          /* prepared in all, and the seconds that they took: all together, the most */
    double shape_total, shape_seconds;
    bool
        capture_failed; /* sticky: what was computed before it may be wrong, as the device reports errors there */
    struct tess_sample_ops *sample_ops;
};

/* The plan for this shape, not prepared. `under_way`: as in tess_mover; the device is waited for on `stream` when a plan that
 * it may be using must go. */
tess_status tess_window_plan_for(tess_windows *windows, const tess_bound *bound, tess_plan_shape shape,
                                 int under_way, tess_stream *stream, tess_window_plan **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* Makes it ready to run in the blocks. */
tess_status tess_window_plan_prepare(tess_windows *windows, tess_window_plan *plan, const void *weights,
                                     tess_error *error) TESS_MUST_CHECK;
void tess_window_plan_run(tess_windows *windows, const tess_window_plan *plan, const void *weights,
                          tess_stream *stream, int64_t units);
void tess_window_plans_drop_graphs(tess_windows *windows);
void tess_window_plans_clear(tess_windows *windows);

#endif
