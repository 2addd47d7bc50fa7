/* fdk.h: filtered backprojection of cone and parallel views (Feldkamp, Davis, Kress 1984): multiply each ray by its
 * cosine, filter the rows by the ramp, sum the views at each voxel. rays.c uses it as `inverse`. */
#ifndef TESS_PHYSICS_FDK_H
#define TESS_PHYSICS_FDK_H

#include "physics/rays.h"

typedef struct tess_fdk tess_fdk; /* owned by the caller: tess_fdk_destroy */

enum { TESS_FDK_USUAL_BYTES = 32 << 20 };

/* Views are filtered in chunks of at most `bytes` of rows, or one view if that is larger. The settings must have been
 * checked. Returns TESS_UNSUPPORTED if the device lacks one of the ops. */
tess_status tess_fdk_create(tess_device *device, const tess_rays_settings *settings, size_t bytes,
                            tess_fdk **out, tess_error *error) TESS_MUST_CHECK;
/* Called once before it runs: the volume is processed in slabs of so many slices; the last one may be thinner. */
tess_status tess_fdk_cut(tess_fdk *fdk, const tess_rays_settings *settings, int64_t thickness,
                         tess_error *error) TESS_MUST_CHECK;
/* The same for one slab, of these slices. */
tess_status tess_fdk_take(tess_fdk *fdk, const tess_rays_settings *settings, int64_t first, int64_t slices,
                          tess_error *error) TESS_MUST_CHECK;
void tess_fdk_destroy(tess_fdk *fdk);
size_t tess_fdk_scratch(const tess_fdk *fdk);
size_t tess_fdk_held(const tess_fdk *fdk);
/* Computes one slab of the volume. `table` is the views' vectors in the device's memory; the measurement may be in
 * memory of host_alloc, because each value is read once. */
void tess_fdk_run(const tess_fdk *fdk, int64_t slab, tess_filter filter, const void *table,
                  const void *measurement, void *volume, void *scratch, tess_stream *stream);
/* Its two parts, for one chunk of views: filters them into rows at the beginning of the scratch; adds these to a slab, or
 * replaces it. `vectors` and `views` begin with the chunk. */
void tess_fdk_filter(const tess_fdk *fdk, tess_filter filter, const void *vectors, const void *views,
                     void *scratch, tess_stream *stream);
void tess_fdk_spread(const tess_fdk *fdk, int64_t slab, bool add, const void *vectors, void *volume,
                     void *scratch, tess_stream *stream);

#endif
