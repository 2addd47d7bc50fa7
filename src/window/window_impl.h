/* window_impl.h: the struct tess_windows, for the files of this room. plans.c: the cache of recently used
 * plans. */
#ifndef TESS_WINDOW_WINDOW_IMPL_H
#define TESS_WINDOW_WINDOW_IMPL_H

#include "window/window.h"

/* A network at one shape; its first run prepares and captures it. */
typedef struct tess_window_plan {
    const tess_bound *bound;
    const void *weights; /* the weights with which the graph was captured */
    tess_plan_shape shape;
    tess_net_plan *plan; /* NULL: an empty slot */
    tess_graph *graph;   /* NULL where the device needs none */
    bool prepared;
    uint64_t used; /* turn of its last use */
} tess_window_plan;

struct tess_windows {
    tess_windows_settings settings;
    tess_block arena, workspace;
    tess_stream *capture;
    tess_window_plan *plans; /* array of settings.keep plans */
    uint64_t turn;           /* batches so far */
    int64_t shapes;          /* shapes prepared so far; the seconds for them: total, longest */
    double shape_total, shape_seconds;
    bool capture_failed; /* sticky: a capture may report earlier errors, so earlier results may be wrong */
    struct tess_sample_ops *sample_ops;
};

/* Returns the plan for this shape, not prepared. `under_way` is as in tess_mover. Waits for the device on
 * `stream` when a plan that it may be using must be dropped. */
tess_status tess_window_plan_for(tess_windows *windows, const tess_bound *bound, tess_plan_shape shape,
                                 int under_way, tess_stream *stream, tess_window_plan **out,
                                 tess_error *error) TESS_MUST_CHECK;
/* Makes the plan ready to run in the blocks. */
tess_status tess_window_plan_prepare(tess_windows *windows, tess_window_plan *plan, const void *weights,
                                     tess_error *error) TESS_MUST_CHECK;
void tess_window_plan_run(tess_windows *windows, const tess_window_plan *plan, const tess_window_run *run,
                          int64_t units);
void tess_window_plans_drop_graphs(tess_windows *windows);
void tess_window_plans_clear(tess_windows *windows);

#endif
