/* cut.h: how an image or volume is cut into windows, and the order in which they are visited: slabs, then
 * strips, then batches of windows of one shape, side by side in a strip. */
#ifndef TESS_WINDOW_CUT_H
#define TESS_WINDOW_CUT_H

#include "net/plan.h"
#include "tile/grid.h"

typedef struct tess_cut {
    tess_axis axis[TESS_SPATIAL]; /* padded to the network's grid; an image has a depth of 1 */
    int64_t batch;                /* most windows that run through the network at once */
    bool above, below;      /* the whole is a strip of an image: see tess_plan_shape. Its rows are not cut. */
    bool left, right;       /* or a block of it, of which nothing is cut */
    bool slices;            /* or a slab of a volume, whose slices are not cut */
    tess_level_rows levels; /* of a strip: see tess_plan_shape */
} tess_cut;

/* An image of one slice. */
tess_cut tess_cut_image(const tess_axis *rows, const tess_axis *cols, int64_t batch);

/* Windows [first, first + n) of a strip. It keeps no pointer to the cut. */
typedef struct tess_window_batch {
    tess_span depth, rows; /* of every window in the batch */
    tess_axis cols;
    int64_t slab, strip, first, n;
    bool above, below, left, right, slices; /* as in the cut */
    tess_level_rows levels;
} tess_window_batch;

#define TESS_ALL_STRIPS (-1)

/* The first batch of the cut, or of one strip of its first slab; the next batch. Return false after the last. */
bool tess_batch_first(const tess_cut *cut, int64_t strip, tess_window_batch *batch);
bool tess_batch_next(const tess_cut *cut, int64_t strip, tess_window_batch *batch);

/* The number of different shapes of its batches, counted up to 64 in each axis: as many plans as a cache needs
 * to make none twice. */
int64_t tess_cut_shapes(const tess_cut *cut);

/* The columns of window `item`, counted from 0 within the batch. */
tess_span tess_batch_cols(const tess_window_batch *batch, int64_t item);
tess_plan_shape tess_batch_shape(const tess_window_batch *batch);
/* Pixels of an image of this size that the batch writes, for the progress. */
int64_t tess_batch_pixels(const tess_window_batch *batch, const int64_t size[TESS_SPATIAL]);

#endif
