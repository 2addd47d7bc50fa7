/* rays_shadow.h: which rows of the detector see a slab of the volume, in one view: no ray of another row has a weight in the slab, and
 * neither FDK nor any backprojection of the slab reads other rows. Ranks that share a volume by slabs send each other these rows only. */
#ifndef TESS_PHYSICS_RAYS_SHADOW_H
#define TESS_PHYSICS_RAYS_SHADOW_H

#include "physics/rays.h"

/* Rows [first, end) of the detector; first == end: none. */
typedef struct tess_shadow_rows {
    int32_t first, end;
} tess_shadow_rows;

/* Of slices [first, first + slices); `numbers` are the 12 of the view. Does not depend on which rank asks. */
tess_shadow_rows tess_rays_shadow(const tess_rays_settings *settings, int64_t first, int64_t slices,
                                  const double *numbers);
/* The rows from the first to the last of several shadows. */
tess_shadow_rows tess_shadow_union(const tess_shadow_rows *shadows, int count);

#endif
