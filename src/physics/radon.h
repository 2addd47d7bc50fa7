/* radon.h: the parallel-beam Radon transform of a square image, and filtered backprojection.
 *
 * p[view][s] = sum over h of the bilinear sample of the image at x = c + (s - a) cos t + h sin t (along a row), y
 * = c - (s - a) sin t + h cos t (down the rows), in pixels. c = (size - 1) / 2 is the middle of the image, `a` is
 * the column that sees the middle, and h runs in steps of 1 symmetrically about 0; outside the image is zero. At
 * t = 0 rays run down the columns, and s along a row; as t grows the detector turns counterclockwise. It is a
 * plain sum, so a disk of value 1 and radius r pixels projects to 2 r at its middle. The weights are those of
 * geometry/ray2.h.
 *
 * The inverse is filtered backprojection: zero-pad the rows, multiply by the ramp of physics/filter.h and by pi /
 * views, then apply the exact transpose. Samples are one pixel apart in both directions, so a pixel's weights in
 * a view sum to about 1 and the transpose interpolates. The views must be spread evenly over a half (or a full)
 * turn. */
#ifndef TESS_PHYSICS_RADON_H
#define TESS_PHYSICS_RADON_H

#include "physics/filter.h"
#include "physics/operator.h"

typedef struct tess_radon_settings {
    int64_t size, views;
    int64_t columns;      /* of the detector; 0: as many as the image has */
    const double *angles; /* degrees */
    /* `a` of each view, in columns from the middle of the first; NULL: (columns - 1) / 2 */
    const double *centres;
    bool circle;  /* the image is zero outside the inscribed circle */
    bool corners; /* without the circle, rays extend to the corners; otherwise they have `size` samples */
    /* of the scan that these views are a part of, for the factor of the inverse; 0: they are all */
    int64_t all_views;
    tess_share *share; /* only for tess_radon_create_shared */
} tess_radon_settings;

/* Image (1,1,size,size,1), measurement (1,1,views,columns,1). The inverse requires the FFT of the device; its filter
 * is Ram-Lak by default. */
tess_status tess_radon_create_scan(tess_device *device, const tess_radon_settings *settings,
                                   tess_operator **out, tess_error *error) TESS_MUST_CHECK;
/* The same for ranks: the settings are those of the whole; image and measurement are this rank's rows and views. */
tess_status tess_radon_create_shared(tess_device *device, const tess_radon_settings *settings,
                                     tess_operator **out, tess_error *error) TESS_MUST_CHECK;
/* The same with as many columns as the image, and the axis in the middle of both. */
tess_status tess_radon_create(tess_device *device, int64_t size, int64_t views, const double *angles,
                              bool circle, tess_operator **out, tess_error *error) TESS_MUST_CHECK;
void tess_radon_set_filter(tess_operator *radon, tess_filter filter);

#endif
