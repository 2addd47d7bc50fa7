/* alike.h: how alike the structures of three channels are, so that channels of one scene (colours) can be told from
 * channels of three quantities (heights, slopes and aspects, say). */
#ifndef TESS_JOB_DENOISE_LOOK_ALIKE_H
#define TESS_JOB_DENOISE_LOOK_ALIKE_H

#include "base/status.h"

enum { TESS_ALIKE_BLOCK = 8, TESS_ALIKE_CHANNELS = 3 };

typedef struct tess_alike_block {
    double sum[TESS_ALIKE_CHANNELS]; /* of the values; then their mean, NaN if there are few */
    double count[TESS_ALIKE_CHANNELS];
} tess_alike_block;

typedef struct tess_alike {
    int64_t blocks;                 /* in a row of blocks; 0: nothing is compared */
    int64_t rows;                   /* of the present row of blocks */
    bool above;                     /* `means` has a row of blocks above the present one */
    tess_alike_block *sums, *means; /* owned; of the present row of blocks, and of the one above */
    double products[6],
        squares; /* of differences between blocks: 00, 11, 22, 01, 02, 12; of neighbouring pixels */
    double
        share; /* sum over the differences: their variance over that of neighbouring pixels' in white noise */
    int64_t differences, pixels, possible; /* differences that there would be without holes */
} tess_alike;

tess_status tess_alike_begin(tess_alike *a, int64_t width, tess_error *error) TESS_MUST_CHECK;
/* The next row, of three interleaved channels; NaN: no value. */
void tess_alike_row(tess_alike *a, int64_t width, const float *values);
/* The mean correlation of the channels' structures, without sign; 1 if there are none that stand out from noise. */
double tess_alike_end(const tess_alike *a);
/* Whether holes leave too little to compare, so that the answer is 1 for that reason alone. */
bool tess_alike_is_hidden(const tess_alike *a);
void tess_alike_release(tess_alike *a);
/* Whether the three channels of a row are equal; holes are equal to each other. */
bool tess_alike_is_gray(const float *values, int64_t width);

#endif
