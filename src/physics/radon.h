/* radon.h: the parallel-beam Radon transform of a square image, and filtered backprojection.
 *
 * p[view][s] = sum over h of the bilinear sample of the image at X = g_s cos t + g_h sin t (along a row),
 * Y = -g_s sin t + g_h cos t (down the rows), where g_k = 2 k / (size - 1) - 1 and [-1, 1] runs from the centre of
 * the first pixel to that of the last; outside the image is zero. It is a plain sum, so a unit disk of radius r
 * pixels projects to 2 r at its middle. The weights are those of device/ray2.h.
 *
 * The inverse is filtered backprojection: rows zero-padded, times the ramp of physics/filter.h, times pi / views,
 * then the exact transpose: samples lie one pixel apart in both directions, so a pixel's weights in a view sum to
 * about 1 and the transpose interpolates. It expects views spread evenly over a half (or a full) turn. */
#ifndef TESS_PHYSICS_RADON_H
#define TESS_PHYSICS_RADON_H

#include "physics/filter.h"
#include "physics/operator.h"

/* Image (1,1,size,size,1), measurement (1,1,views,size,1); angles in degrees. With `circle` what lies outside the
 * inscribed circle counts as zero. There is an inverse where the device has the FFT; it starts with Ram-Lak. */
tess_status tess_radon_create(tess_device *device, int64_t size, int64_t views, const double *angles,
                              bool circle, tess_operator **out, tess_error *error) TESS_MUST_CHECK;
void tess_radon_set_filter(tess_operator *radon, tess_filter filter);

#endif
