/* slices.h: the scale of each slice of a volume. */
#ifndef TESS_JOB_DENOISE_LOOK_SLICES_H
#define TESS_JOB_DENOISE_LOOK_SLICES_H

#include "job/denoise/denoise.h"

/* Counts a value of a slice. */
void tess_denoise_span_add(tess_denoise_span *span, double value);
/* The samples that mean 0 and 1 in a slice: those of the file, unless it fills so little of their range that networks would
 * see no contrast. An image is slice 0. */
tess_scale tess_denoise_slice_scale(const tess_denoise_file *file, int64_t slice);
/* The mean sample of a slice; that of the file, if it has no data or is an image. */
double tess_denoise_slice_mean(const tess_denoise_file *file, int64_t slice);
/* How many slices have a scale of their own. */
int64_t tess_denoise_own_scales(const tess_denoise_file *file);

#endif
