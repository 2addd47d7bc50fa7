/* slabs.h: how long ranks take to exchange views of a volume that they share by slabs: the schedule of physics/rays_bands.h, of which rounds,
 * shadows and agents are the same functions, over the links of a machine. */
#ifndef TESS_PLAN_SLABS_H
#define TESS_PLAN_SLABS_H

#include "physics/rays.h"
#include "plan/ranks/links.h"
#include "plan/ranks/strips.h"

/* Projections of all slabs to the owners of the views; the way back, to backproject them, takes as long. `slabs` divide the depth;
 * `settings->vectors` NULL: the circle of `reconstruct --problem tomo3d`. */
tess_status tess_slabs_seconds(const tess_rays_settings *settings, const tess_strips *slabs,
                               const tess_links *links, double *seconds, tess_error *error) TESS_MUST_CHECK;

#endif
