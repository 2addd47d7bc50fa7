/* rays_impl.h: the members of a ray operator, both for a volume in the device's memory (rays.c) and for one that
 * passes through it in slabs (rays_slabs.c). */
#ifndef TESS_PHYSICS_RAYS_IMPL_H
#define TESS_PHYSICS_RAYS_IMPL_H

#include "physics/fdk.h"
#include "physics/rays.h"

typedef struct tess_rays {
    tess_operator base; /* first: a tess_operator * is a tess_rays * */
    tess_block table;   /* of the views' vectors, in the device's memory */
    tess_fdk *fdk;      /* NULL: the device has no FFT */
    tess_filter filter;
} tess_rays;

/* Sets shapes, costs, table and FDK, but not the ops. Clear it also if this fails. */
tess_status tess_rays_begin(tess_rays *rays, tess_device *device, const tess_rays_settings *settings,
                            size_t filter_bytes, tess_error *error) TESS_MUST_CHECK;
void tess_rays_clear(tess_rays *rays);

#endif
