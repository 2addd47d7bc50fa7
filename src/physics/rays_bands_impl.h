/* rays_bands_impl.h: rows of views, for the files of physics/rays_bands.h. */
#ifndef TESS_PHYSICS_RAYS_BANDS_IMPL_H
#define TESS_PHYSICS_RAYS_BANDS_IMPL_H

#include "physics/rays_bands.h"

/* Rows of a view: all, those that see the slab of a rank of this node, those that see any slab of this node, or any of another one. */
typedef struct tess_bands_part {
    enum { TESS_BANDS_ALL, TESS_BANDS_MEMBER, TESS_BANDS_NODE, TESS_BANDS_OTHER } kind;
    int index; /* of the member, of the other node */
} tess_bands_part;

tess_shadow_rows tess_bands_rows(const tess_bands *bands, tess_bands_part part, int64_t view);
/* Of all views of a portion. */
size_t tess_bands_bytes(const tess_bands *bands, tess_bands_portion portion, tess_bands_part part);

static inline tess_bands_part tess_bands_mine(const tess_bands *bands)
{
    return (tess_bands_part){TESS_BANDS_MEMBER, bands->member};
}

#endif
