/* zeros.h: zeros that mean "no data" without being declared: depth maps, heights with voids, the collar of a turned orthophoto.
 *
 * Pixels whose colours are all 0 are holes if nothing else comes near 0: the least other value is at least 1/20 of the range of
 * the others away from it, and 16 of the steps between them, since counts of few photons have zeros too. In 8 bits values go
 * down to 0 in any photograph. There zeros are holes if nearly all of them are in long runs, some of them at the border, and
 * the pixels at the runs' ends are not dark: noise would have changed some of them, and black of a picture fades out. */
#ifndef TESS_JOB_ZEROS_H
#define TESS_JOB_ZEROS_H

#include "tensor/tensor.h"

typedef struct tess_zeros {
    tess_dtype dtype; /* of the file */
    int64_t height, width, channels, colours;
    int64_t rows, count, in_runs, at_border, ends, dark_ends, pixels; /* so far; count: pixels that are 0 */
    double least, largest, step; /* of the other samples; step: the least difference of neighbours */
} tess_zeros;

/* Begins to count in `height` rows of pixels, of whose `channels` the first `colours` count. */
void tess_zeros_begin(tess_zeros *zeros, tess_dtype dtype, int64_t height, int64_t width, int64_t channels,
                      int64_t colours);
/* Counts the next row: samples as the file has them; NaN is neither 0 nor a value, nor is infinity. */
void tess_zeros_row(tess_zeros *zeros, const double *row);
/* Whether further rows cannot make the zeros holes. */
bool tess_zeros_hopeless(const tess_zeros *zeros);
/* Whether all rows are counted, and their zeros are holes. */
bool tess_zeros_are_holes(const tess_zeros *zeros);

#endif
