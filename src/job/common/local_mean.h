/* local_mean.h: rows of an image with the mean around each value, over a square of 7 x 7, clipped at the image's
 * edges. Rows are processed as a stream, three rows ahead. The mean depends only on the image, never on tiles. */
#ifndef TESS_JOB_LOCAL_MEAN_H
#define TESS_JOB_LOCAL_MEAN_H

#include "base/status.h"

enum { TESS_LOCAL_REACH = 3 };

typedef tess_status (*tess_local_row_fn)(void *user, float *values, tess_error *error);

typedef struct tess_local_mean {
    int64_t width, channels, height;
    float *rows;   /* 2 * reach + 1 of them, a ring */
    double *total; /* of each column, over the rows of the square */
    int64_t read, given;
} tess_local_mean;

/* The memory must be 64-byte aligned. */
size_t tess_local_mean_bytes(int64_t width, int64_t channels);
/* Starts an image or slice. `memory` has tess_local_mean_bytes. */
void tess_local_mean_begin(tess_local_mean *local, int64_t width, int64_t channels, int64_t height,
                           void *memory);
/* Goes to row `row`; returns the row that will be read next, which is up to TESS_LOCAL_REACH before it. After
 * tess_local_mean_begin. */
int64_t tess_local_mean_go_to(tess_local_mean *local, int64_t row);
/* Returns the next row and the means around its values; calls `read` for rows in order. */
tess_status tess_local_mean_next(tess_local_mean *local, tess_local_row_fn read, void *user, float *values,
                                 float *means, tess_error *error) TESS_MUST_CHECK;

#endif
