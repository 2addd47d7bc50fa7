/* below.h: whether the image itself, not only its noise, lies below the 0 of its scale. */
#ifndef TESS_JOB_DENOISE_LOOK_BELOW_H
#define TESS_JOB_DENOISE_LOOK_BELOW_H

#include "job/denoise/denoise.h"

/* Means over blocks of 4 x 4 samples of one channel: white noise has a quarter of its level in them. */
typedef struct tess_below {
    float *means; /* every `stride`-th */
    double *sums; /* of the blocks that have begun */
    int64_t width, colours, rows, count, seen, stride;
} tess_below;

tess_status tess_below_begin(tess_below *below, int64_t rows, int64_t width, int64_t colours,
                             tess_error *error);
void tess_below_row(tess_below *below, const float *values);
/* 1 % of the means are below this; 0: there are none. */
double tess_below_end(tess_below *below);
void tess_below_release(tess_below *below);

/* Whether a part of the image lies clearly below 0, which the noise level does not explain. */
bool tess_denoise_lies_below(const tess_denoise_settings *settings, const tess_denoise_file *file);
/* Notes it; `low`: the least value that is no outlier. */
void tess_denoise_note_below(const tess_denoise_settings *settings, const tess_denoise_file *file,
                             double low);

#endif
