/* pixel_stats.h: what each pixel of the detector measured over all views, and how it agrees with the pixels beside it. */
#ifndef TESS_JOB_RECONSTRUCT_LOOK_PIXEL_STATS_H
#define TESS_JOB_RECONSTRUCT_LOOK_PIXEL_STATS_H

#include "job/reconstruct/scan/turning.h"

enum { TESS_PIXEL_FLOATS = 5 }; /* for each pixel */

typedef struct tess_pixel_stats {
    int64_t rows, columns, views;
    float *low, *high, *mean; /* NaN: the pixel has no line integrals */
    float *square;            /* sums of squares of the differences from the mean */
    float *product;           /* sums of products with the same of the pixel to the right */
} tess_pixel_stats;

/* `memory`: TESS_PIXEL_FLOATS for each pixel. */
void tess_pixel_stats_begin(tess_pixel_stats *stats, int64_t rows, int64_t columns, float *memory);
void tess_pixel_stats_add(tess_pixel_stats *stats, const float *view);
bool tess_pixel_is_stuck(const tess_pixel_stats *stats, int64_t pixel);
/* Whether a pixel changes from view to view, but not as the object does, which turns; `largest` is the largest mean of
 * pixels that see it. */
bool tess_pixel_is_wild(const tess_pixel_stats *stats, const tess_turning *turning, int64_t pixel,
                        double largest);
/* The largest mean of two pixels side by side, so that a single wild one does not count. */
double tess_pixel_stats_largest(const tess_pixel_stats *stats);

#endif
