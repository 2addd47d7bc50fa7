/* rays.h: line integrals of a volume along cone or parallel rays, with vectors for each view, as an operator; a
 * matched pair (geometry/ray3.h). Volume (1,D,H,W,1): x = W, y = H, z = D, centred on the origin, cubes of `spacing`.
 * Measurement (1,views,rows,columns,1). A view's 12 numbers: source (parallel: direction of the rays), detector
 * centre, step u between columns, step v between rows; pixel (r, c) is centre + (c - (columns-1)/2) u + (r -
 * (rows-1)/2) v.
 *
 * `inverse` is FDK, which is correct for views spread evenly over a circle around z (parallel: a circle or half of
 * it). */
#ifndef TESS_PHYSICS_RAYS_H
#define TESS_PHYSICS_RAYS_H

#include "physics/filter.h"
#include "physics/operator.h"

typedef struct tess_rays_settings {
    tess_ray_geometry geometry; /* TESS_CONE_3D or TESS_PARALLEL_3D */
    int64_t depth, height, width;
    double spacing;
    int64_t views, rows, columns;
    const double *vectors; /* 12 numbers per view; the operator keeps a copy */
    tess_share *share;     /* only for tess_rays_create_shared */
} tess_rays_settings;

/* Reports errors in a geometry: numbers that are not finite, a source inside the volume, a view that misses it. */
tess_status tess_rays_check(const tess_rays_settings *settings, tess_error *error) TESS_MUST_CHECK;
tess_status tess_rays_create(tess_device *device, const tess_rays_settings *settings, tess_operator **out,
                             tess_error *error) TESS_MUST_CHECK;
/* The same for a volume larger than the device: image and measurement are in memory of host_alloc, and slabs and
 * views pass through at most `bytes` of device memory, which the operator holds. Returns TESS_OVER_LIMIT if not even
 * one slice and one view fit. */
tess_status tess_rays_create_slabs(tess_device *device, const tess_rays_settings *settings, size_t bytes,
                                   tess_operator **out, tess_error *error) TESS_MUST_CHECK;
/* The same for ranks: the settings are those of the whole; image and measurement are this rank's slices and views. */
tess_status tess_rays_create_shared(tess_device *device, const tess_rays_settings *settings,
                                    tess_operator **out, tess_error *error) TESS_MUST_CHECK;
/* Returns the number of slabs, and of parts of the views, of such an operator. */
void tess_rays_cuts(const tess_operator *slabs, int64_t *slabs_count, int64_t *parts);
/* Sets the filter of `inverse`; the default is Ram-Lak. */
void tess_rays_set_filter(tess_operator *rays, tess_filter filter);

/* A circle around z, with source and detector on opposite sides at the given distances from the axis; view i is at
 * 360 i / views degrees. `pitch` is the side of a detector pixel. */
void tess_rays_circle(int64_t views, double source_distance, double detector_distance, double pitch,
                      double *vectors);

/* PROJECT or BACKPROJECT of slices [first, first + slices) only, for volumes that do not fit: projections of slabs
 * add up to that of the whole, backprojections are slabs of that of the whole. `weights` of a call is the table of
 * vectors in the device's memory. */
tess_op tess_rays_slab(const tess_rays_settings *settings, tess_op_kind kind, int64_t first, int64_t slices,
                       bool accumulate);

#endif
