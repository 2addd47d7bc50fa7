/* digits.h: whether samples keep what varies in them when they become float32, in which pipelines compute. */
#ifndef TESS_TRAIN_STATISTICS_DIGITS_H
#define TESS_TRAIN_STATISTICS_DIGITS_H

#include "train/statistics/pixels.h"

/* Fails if, in a band of some of these pixels, rounding to float32 makes an error of more than a fiftieth of what the band varies by: large
 * values that differ little, stored as doubles or as integers of 32 bits. Pixels whose `keep` is 0 do not count; NULL: all
 * do. */
tess_status tess_pixel_digits(const tess_pixel_image *image, int bands, const void *samples, int64_t pixels,
                              const uint8_t *keep, tess_error *error) TESS_MUST_CHECK;

#endif
