/* window.h: runs one network over the windows of a larger image or volume.
 *
 * tess_windows holds the memory of a run and a cache of plans, keyed by the shape of a batch of windows:
 * prepared and, where the device has graphs, captured. A mover fills the network's input and takes its output.
 * There are three movers: the caller's own functions for pixels in host memory, resident.h for images on the
 * device, and queue.h for images on the host and a network on a GPU, where copies and runs overlap.
 *
 * Use: create, then alloc what was planned, then run any number of times. A run allocates only when it meets a
 * shape that is not in the cache, or an import with a new noise level; tess_windows_prepare caches all shapes
 * of a cut. One thread at a time, except through a queue. */
#ifndef TESS_WINDOW_WINDOW_H
#define TESS_WINDOW_WINDOW_H

#include "window/cut.h"

typedef struct tess_windows tess_windows; /* owned by the caller: tess_windows_destroy */

typedef struct tess_windows_settings {
    tess_device *device; /* must outlive this object */
    int keep;            /* plans kept, at least 1; the least recently used one is dropped */
    bool graphs;         /* capture plans as graphs, where the device has them */
    bool
        run_first; /* run a plan before capturing it: kernels may load on first use, which a capture forbids */
} tess_windows_settings;

tess_status tess_windows_create(const tess_windows_settings *settings, tess_windows **out,
                                tess_error *error) TESS_MUST_CHECK;
/* Accepts NULL. Work queued on the device must be done. */
void tess_windows_destroy(tess_windows *windows);
/* Allocates the planned blocks, after releasing the previous ones. */
tess_status tess_windows_alloc(tess_windows *windows, size_t arena_bytes, size_t workspace_bytes,
                               tess_error *error) TESS_MUST_CHECK;
void tess_windows_free(tess_windows *windows); /* frees the blocks; plans are kept, graphs are not */
/* True when the blocks have the sizes that tess_windows_alloc would allocate. */
bool tess_windows_holds(const tess_windows *windows, size_t arena_bytes, size_t workspace_bytes);

typedef struct tess_window_net {
    const tess_bound *bound;
    const void *weights; /* packed, in the device's memory */
    int64_t planes;      /* runs for each batch: 1, or one per colour when the network has one channel */
} tess_window_net;

/* What the windows of a cut need, from plans that are made but not prepared. Needs no blocks. */
typedef struct tess_windows_needs {
    size_t arena, workspace;
    size_t input, output; /* bytes of the network's input and output for one batch */
    double operations;    /* of all windows, for one plane */
} tess_windows_needs;
tess_status tess_windows_needed(tess_windows *windows, const tess_bound *bound, const tess_cut *cut,
                                tess_windows_needs *needs, tess_error *error) TESS_MUST_CHECK;
/* Plans, prepares and captures every shape of the cut, as far as the cache has room. */
tess_status tess_windows_prepare(tess_windows *windows, const tess_window_net *net, const tess_cut *cut,
                                 tess_error *error) TESS_MUST_CHECK;

/* The network's input or output for a batch, in the device's memory. */
typedef struct tess_window_end {
    tess_tensor tensor;
    void *data;
} tess_window_end;

/* For each batch: begin; for each plane gather, the network, scatter; end with the resulting status, if begin
 * succeeded. These functions queue their work on the stream of the run, or wait. */
typedef struct tess_mover {
    tess_status (*begin)(void *user, const tess_window_batch *batch, tess_error *error); /* may be NULL */
    tess_status (*gather)(void *user, const tess_window_batch *batch, int64_t plane,
                          const tess_window_end *input, tess_error *error);
    tess_status (*scatter)(void *user, const tess_window_batch *batch, int64_t plane,
                           const tess_window_end *output, tess_error *error);
    void (*end)(void *user, const tess_window_batch *batch, tess_status status); /* may be NULL */
    bool wait;     /* wait for the network before scatter, which reads its output on the host */
    int under_way; /* most batches that may be queued and not done, including this one; 0: any number */
} tess_mover;

typedef struct tess_window_run {
    const tess_window_net *net;
    const tess_cut *cut;
    int64_t strip;              /* only this strip of an image, or TESS_ALL_STRIPS */
    int64_t size[TESS_SPATIAL]; /* of the image: its pixels are added to the device's progress */
    tess_stream *stream;        /* NULL: the device's default stream */
    const tess_mover *mover;
    void *user;                      /* of the mover */
    const tess_exchanger *exchanger; /* for a cut with neighbours; else NULL */
    void *exchange_user;
} tess_window_run;

/* Stops between windows and between layers when the device's `stop` is set; with neighbours, all exchanges are still made,
 * if the shapes of the cut have been prepared. Does not wait for the device,
 * unless the mover does. */
tess_status tess_windows_run(tess_windows *windows, const tess_window_run *run,
                             tess_error *error) TESS_MUST_CHECK;

#endif
