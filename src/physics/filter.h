/* filter.h: the ramp filter of filtered backprojection (Kak & Slaney 1988, eq. 3.61). Its taps in space, for samples
 * at distance 1, are 1/4 at 0, -1/(pi n)^2 at odd n and 0 at even n. The filter is the transform of these taps, not
 * the ideal |w|, because that keeps the mean of the image correct. */
#ifndef TESS_PHYSICS_FILTER_H
#define TESS_PHYSICS_FILTER_H

#include <stdint.h>

#include "base/status.h"
#include "op/op.h"

typedef enum tess_filter { TESS_FILTER_RAM_LAK, TESS_FILTER_HANN } tess_filter;

/* Returns a power of two, at least 64, so that rows of `length` samples do not wrap around. */
int64_t tess_filter_padded(int64_t length);
/* Computes the real half spectrum, padded / 2 + 1 values, times `scale`; `padded` is a power of two. The Hann window
 * falls from 1 at 0 to 0 at the highest frequency. */
tess_status tess_filter_spectrum(tess_filter filter, int64_t padded, double scale, float *spectrum,
                                 tess_error *error) TESS_MUST_CHECK;
/* Describes the ops that filter `rows` rows of `padded` samples: to their half spectra, times the filter, and back. */
void tess_filter_ops(int64_t rows, int64_t padded, tess_op *transform, tess_op *filter, tess_op *back);

#endif
