/* holes.h: fills samples without a value (NaN, infinity, nodata, masked), so that the network sees a plausible
 * surface there and neighbouring pixels are restored as if nothing were missing. Filled values are never written to a
 * file.
 *
 * A hole continues the picture by its mirror images across the hole's edges to the left, right, above and below: it gets
 * their mean, weighted by 1 / distance^2 of the edges. So the filled samples have the picture's own noise. The value at
 * the edge alone, repeated, draws streaks into a large hole, which networks take for the picture's and continue into it:
 * the row beside the hole then kept most of its noise.
 *
 * Rows are processed as a stream: the last TESS_HOLES_PAST values above are stored, the next value below is searched in
 * TESS_HOLES_AHEAD rows, and far from any value the result approaches the image's mean. So the result depends only on
 * the image, never on tiles, and the memory only on the width. */
#ifndef TESS_JOB_HOLES_H
#define TESS_JOB_HOLES_H

#include "base/status.h"

enum { TESS_HOLES_AHEAD = 32, TESS_HOLES_PAST = 16 };

/* The next row of the image, holes as NaN. */
typedef tess_status (*tess_holes_row_fn)(void *user, float *values, tess_error *error);

typedef struct tess_holes {
    int64_t width, channels, height;
    float mean;           /* of the image */
    float *rows;          /* the next TESS_HOLES_AHEAD + 1 rows, a ring */
    float *above;         /* the last TESS_HOLES_PAST values of each column, a ring */
    int64_t *above_count; /* how many there were */
    int64_t *above_row;   /* where the last was */
    int64_t *below_row;   /* the next row with a value, or the first row not searched yet */
    int64_t read, given;
} tess_holes;

/* Bytes of the rows and columns; the memory must be 64-byte aligned. */
size_t tess_holes_bytes(int64_t width, int64_t channels);
/* Starts an image or slice. `memory` has tess_holes_bytes. */
void tess_holes_begin(tess_holes *holes, int64_t width, int64_t channels, int64_t height, float mean,
                      void *memory);
/* Goes to row `row`: reads all rows before it, but fills none. After tess_holes_begin. */
tess_status tess_holes_skip(tess_holes *holes, int64_t row, tess_holes_row_fn read, void *user,
                            tess_error *error) TESS_MUST_CHECK;
/* Returns the next row with holes filled; calls `read` for the rows that it needs. */
tess_status tess_holes_next(tess_holes *holes, tess_holes_row_fn read, void *user, float *values,
                            tess_error *error) TESS_MUST_CHECK;

#endif
