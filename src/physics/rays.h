/* rays.h: line integrals of a volume along cone or parallel rays, with vectors for each view, as an operator; a
 * matched pair (device/ray3.h). Volume (1,D,H,W,1): x = W, y = H, z = D, centred on the origin, cubes of `spacing`.
 * Measurement (1,views,rows,columns,1). A view's 12 numbers: source (parallel: the rays' direction), detector centre,
 * step u between columns, step v between rows; pixel (r, c) is centre + (c - (columns-1)/2) u + (r - (rows-1)/2) v.
 *
 * `inverse` is FDK: right for views that are spread evenly over a circle around z (parallel: a circle or half of it). */
#ifndef TESS_PHYSICS_RAYS_H
#define TESS_PHYSICS_RAYS_H

#include "physics/filter.h"
#include "physics/operator.h"

typedef struct tess_rays_settings {
    tess_ray_geometry geometry; /* TESS_CONE_3D or TESS_PARALLEL_3D */
    int64_t depth, height, width;
    double spacing;
    int64_t views, rows, columns;
    const double *vectors; /* 12 a view; the operator keeps a copy */
} tess_rays_settings;

/* Says what is wrong with a geometry: numbers that are not finite, a source among the voxels, a view that misses. */
tess_status tess_rays_check(const tess_rays_settings *settings, tess_error *error) TESS_MUST_CHECK;
tess_status tess_rays_create(tess_device *device, const tess_rays_settings *settings, tess_operator **out,
                             tess_error *error) TESS_MUST_CHECK;
/* The same where the volume is larger than the device: image and measurement lie in memory of host_alloc, and slabs and
 * views go through at most `bytes` of the device's, which the operator holds. TESS_OVER_LIMIT when not even a slice and
 * a view fit. */
tess_status tess_rays_create_slabs(tess_device *device, const tess_rays_settings *settings, size_t bytes,
                                   tess_operator **out, tess_error *error) TESS_MUST_CHECK;
/* Into how many slabs, and parts of the views, such an operator cuts. */
void tess_rays_cuts(const tess_operator *slabs, int64_t *slabs_count, int64_t *parts);
/* The window of `inverse`; Ram-Lak when it is not said. */
void tess_rays_set_filter(tess_operator *rays, tess_filter filter);

/* A circle around z, source and detector on opposite sides of it at their distances from the axis; view i is at
 * 360 i / views degrees. `pitch` is the side of a detector pixel. */
void tess_rays_circle(int64_t views, double source_distance, double detector_distance, double pitch,
                      double *vectors);

/* PROJECT or BACKPROJECT of slices [first, first + slices) alone, for volumes that do not fit: projections of slabs
 * are accumulated to that of the whole, backprojections are slabs of that of the whole. `weights` of a call is the
 * table of vectors in the device's memory. */
tess_op tess_rays_slab(const tess_rays_settings *settings, tess_op_kind kind, int64_t first, int64_t slices,
                       bool accumulate);

#endif
