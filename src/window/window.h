/* window.h: one network over the windows of something larger.
 *
 * tess_windows holds the memory that a run of the network takes and one cache of plans by the shape of a batch of windows:
 * prepared and, where the device has graphs, captured. A mover fills the network's input and takes its output. There are
 * three: the caller's own functions for pixels in the host's memory, resident.h for images on the device, and queue.h for
 * images on the host and a network on a card, where copies and runs overlap.
 *
 * Use: create, then alloc what was planned, then run as often as wanted. A run allocates only when it meets a shape that
 * is not in the cache, or an import with a new noise level; tess_windows_prepare puts all shapes of a cut there. One
 * thread at a time, except through a queue. */
#ifndef TESS_WINDOW_WINDOW_H
#define TESS_WINDOW_WINDOW_H

#include "window/cut.h"

typedef struct tess_windows tess_windows; /* owned by the caller: tess_windows_destroy */

typedef struct tess_windows_settings {
    tess_device *device; /* outlives it */
    int keep;    /* plans kept, at least 1; the one that was not used for the longest time is dropped */
    bool graphs; /* capture plans as graphs, where the device has them */
    bool
        run_first; /* run a plan before it is captured: kernels may be loaded on first use, which a capture forbids */
} tess_windows_settings;

tess_status tess_windows_create(const tess_windows_settings *settings, tess_windows **out,
                                tess_error *error) TESS_MUST_CHECK;
/* Accepts NULL. What was queued on the device must be over. */
void tess_windows_destroy(tess_windows *windows);
/* Takes the blocks, as the plan promised them; releases those of before first. */
tess_status tess_windows_alloc(tess_windows *windows, size_t arena_bytes, size_t workspace_bytes,
                               tess_error *error) TESS_MUST_CHECK;
void tess_windows_free(tess_windows *windows); /* the blocks; plans are kept, graphs are not */
/* Whether the blocks are just those that tess_windows_alloc would take. */
bool tess_windows_holds(const tess_windows *windows, size_t arena_bytes, size_t workspace_bytes);

typedef struct tess_window_net {
    const tess_bound *bound;
    const void *weights; /* packed, in the device's memory */
    int64_t planes; /* runs for each batch: 1, or one for each colour when the network takes one channel */
} tess_window_net;

/* What the windows of a cut need, by plans that are made but not prepared: no blocks are taken or needed for it. */
typedef struct tess_windows_needs {
    size_t arena, workspace;
    size_t input, output; /* of the network, for one batch */
    double operations;    /* of all windows, one plane */
} tess_windows_needs;
tess_status tess_windows_needed(tess_windows *windows, const tess_bound *bound, const tess_cut *cut,
                                tess_windows_needs *needs, tess_error *error) TESS_MUST_CHECK;
/* Plans, prepares and captures every shape of the cut, as far as the cache holds them. */
tess_status tess_windows_prepare(tess_windows *windows, const tess_window_net *net, const tess_cut *cut,
                                 tess_error *error) TESS_MUST_CHECK;

/* The network's input or output for a batch, in the device's memory. */
typedef struct tess_window_end {
    tess_tensor tensor;
    void *data;
} tess_window_end;

/* For each batch: begin; for each plane gather, the network, scatter; end, if begin succeeded, with what came of it. All
 * queue their work on the stream of the run, or wait. */
typedef struct tess_mover {
    tess_status (*begin)(void *user, const tess_window_batch *batch, tess_error *error); /* may be NULL */
    tess_status (*gather)(void *user, const tess_window_batch *batch, int64_t plane,
                          const tess_window_end *input, tess_error *error);
    tess_status (*scatter)(void *user, const tess_window_batch *batch, int64_t plane,
                           const tess_window_end *output, tess_error *error);
    void (*end)(void *user, const tess_window_batch *batch, tess_status status); /* may be NULL */
    bool wait;     /* for the network to be done before scatter, which reads its output on the host */
    int under_way; /* batches that may be queued and not done, this one included; 0: any number */
} tess_mover;

typedef struct tess_window_run {
    const tess_window_net *net;
    const tess_cut *cut;
    int64_t strip;              /* only this one, of an image; TESS_ALL_STRIPS */
    int64_t size[TESS_SPATIAL]; /* of the image: its pixels are added to the device's progress */
    tess_stream *stream;        /* NULL: the device's own */
    const tess_mover *mover;
    void *user; /* of the mover */
} tess_window_run;

/* Stops between windows and between layers when the device's `stop` says so. Does not wait for the device, unless the mover
 * does. */
tess_status tess_windows_run(tess_windows *windows, const tess_window_run *run,
                             tess_error *error) TESS_MUST_CHECK;

#endif
