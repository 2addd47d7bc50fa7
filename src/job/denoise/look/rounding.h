/* rounding.h: foretells how much of an image's light is lost when the restored samples are rounded.
 *
 * Counts of few photons are whole numbers, but the rates behind them are not: a rate of 0.1 is counted as 0 or 1, and
 * restored as 0.1, which would be rounded to 0 everywhere. The same holds above an offset, and for means of frames: what
 * lies between whole numbers is only in the noise. The means of blocks of pixels stand for the restored image. */
#ifndef TESS_JOB_DENOISE_LOOK_ROUNDING_H
#define TESS_JOB_DENOISE_LOOK_ROUNDING_H

#include "base/status.h"
#include "tensor/samples.h"

typedef struct tess_rounding {
    int64_t width, channels, height; /* of a slice */
    tess_scale unit;                 /* the samples that are 0 and 1 */
    int64_t blocks;                  /* in a row, of all channels */
    double *sums;                    /* of the blocks' samples */
    int64_t *counts;
    int64_t row;          /* in the slice */
    double light, change; /* of the slice: the sum of its samples, and what rounding adds to it */
    double most;          /* largest change / light of a slice */
    double pixels, sum, squares,
        errors;      /* of the slice's blocks: means, their squares, those of rounding errors */
    double coarsest; /* largest ratio, of a slice, of the errors of rounding to the deviation of the means */
} tess_rounding;

/* Release also after a failure. */
tess_status tess_rounding_begin(tess_rounding *r, int64_t width, int64_t channels, int64_t height,
                                tess_scale unit, tess_error *error) TESS_MUST_CHECK;
void tess_rounding_release(tess_rounding *r);
/* Takes the next row; values that are not finite are left out. */
void tess_rounding_row(tess_rounding *r, const float *values);

#endif
