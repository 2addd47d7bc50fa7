/* cut.h: how an image or volume is cut into windows, and the one order in which they are visited: slabs, then strips, then
 * batches of windows of one shape, side by side in a strip. */
#ifndef TESS_WINDOW_CUT_H
#define TESS_WINDOW_CUT_H

#include "net/plan.h"
#include "tile/grid.h"

typedef struct tess_cut {
    tess_axis axis[TESS_SPATIAL]; /* padded to the network's grid; an image has one tile of one slice */
    int64_t batch;                /* windows that go through the network at once, at most */
} tess_cut;

/* An image of one slice. */
tess_cut tess_cut_image(const tess_axis *rows, const tess_axis *cols, int64_t batch);

/* Windows [first, first + n) of a strip. A value: it keeps no pointer to the cut. */
typedef struct tess_window_batch {
    tess_span depth, rows; /* of every window in it */
    tess_axis cols;
    int64_t slab, strip, first, n;
} tess_window_batch;

#define TESS_ALL_STRIPS (-1)

/* The first batch of the cut, or of this strip of its first slab; the next one. False behind the last. */
bool tess_batch_first(const tess_cut *cut, int64_t strip, tess_window_batch *batch);
bool tess_batch_next(const tess_cut *cut, int64_t strip, tess_window_batch *batch);

/* Shapes of its batches, counted up to 64 in each axis: how many plans a cache must keep so that none is made twice. */
int64_t tess_cut_shapes(const tess_cut *cut);

/* The columns of a window, `item` counting from 0 within the batch. */
tess_span tess_batch_cols(const tess_window_batch *batch, int64_t item);
tess_plan_shape tess_batch_shape(const tess_window_batch *batch);
/* Pixels of an image of this size that the batch writes: what it counts for in the progress. */
int64_t tess_batch_pixels(const tess_window_batch *batch, const int64_t size[TESS_SPATIAL]);

#endif
