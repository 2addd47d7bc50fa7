/* outliers.h: samples far from all others. */
#ifndef TESS_JOB_DENOISE_LOOK_OUTLIERS_H
#define TESS_JOB_DENOISE_LOOK_OUTLIERS_H

#include "job/denoise/denoise.h"

/* Whether this sample is commonly used to mark missing data. */
bool tess_denoise_is_usual_fill(double sample);
/* Sets look->outliers, outlier, bulk_low and bulk_high from some of the values, and from look->low and high. */
void tess_denoise_find_outliers(const float *sorted, int64_t count, tess_denoise_look *look);

#endif
