/* outliers.h: samples far from all others. */
#ifndef TESS_JOB_DENOISE_LOOK_OUTLIERS_H
#define TESS_JOB_DENOISE_LOOK_OUTLIERS_H

#include "job/denoise/denoise.h"

/* Whether this sample is commonly used to mark missing data. */
bool tess_denoise_is_usual_fill(double sample);
/* Sets look->outliers, outlier, bulk_low and bulk_high from some of the values, and from look->low and high. */
void tess_denoise_find_outliers(const float *sorted, int64_t count, tess_denoise_look *look);
/* Widens `ends` to the least and largest sample of a row, alpha excluded. */
void tess_denoise_find_ends(const tess_image_info *info, const char *samples, const unsigned char *valid,
                            tess_scale *ends);
/* "its samples go from ... and some are ...", and what to do if that marks missing data. */
void tess_denoise_outliers_text(const tess_denoise_file *file, char *text, size_t room);

#endif
