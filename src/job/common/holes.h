/* holes.h: values for samples that hold none (NaN, infinity, nodata, masked), so that a network sees a plausible surface
 * there and its neighbours are restored as if nothing were missing. What is put in never reaches a file.
 *
 * A hole gets the mean of the nearest values to the left, right, above and below, weighted by 1 / distance^2. Rows stream:
 * above is remembered, below is looked for in TESS_HOLES_AHEAD rows, and where nothing is near, the image's mean fades
 * in. So the result depends on the image alone, never on tiles, and memory on the width alone. */
#ifndef TESS_JOB_HOLES_H
#define TESS_JOB_HOLES_H

#include "base/status.h"

enum { TESS_HOLES_AHEAD = 32 };

/* The next row of the image, holes as NaN. */
typedef tess_status (*tess_holes_row_fn)(void *user, float *values, tess_error *error);

typedef struct tess_holes {
    int64_t width, channels, height;
    float mean;         /* of the image */
    float *rows;        /* the next TESS_HOLES_AHEAD + 1 rows, a ring */
    float *above;       /* the last value of each column */
    int64_t *above_row; /* where it was; -1: none yet */
    int64_t *below_row; /* the next row with a value that is known, or the first one that was not looked at */
    int64_t read, given;
} tess_holes;

/* Bytes of the rows and columns, from a 64-byte boundary. */
size_t tess_holes_bytes(int64_t width, int64_t channels);
/* For one image or slice. `memory` has tess_holes_bytes. */
void tess_holes_begin(tess_holes *holes, int64_t width, int64_t channels, int64_t height, float mean,
                      void *memory);
/* The next row, holes filled; asks `read` for those that it needs. */
tess_status tess_holes_next(tess_holes *holes, tess_holes_row_fn read, void *user, float *values,
                            tess_error *error) TESS_MUST_CHECK;

#endif
