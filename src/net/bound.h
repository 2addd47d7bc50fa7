/* bound.h: a network bound to a device and a precision: everything that does not depend on the image's size.
 * This includes the position of each layer's packed weights, the reach of an output value, and the alignment of
 * windows. */
#ifndef TESS_NET_BOUND_H
#define TESS_NET_BOUND_H

#include "device/device.h"
#include "net/net.h"
#include "weights/weights.h"

enum { TESS_LEVELS = 6 };

/* The rows of a strip at each level of the network, in rows of that level: where they begin in the image, and how many there are. All 0:
 * they are the same part of the image at all levels. See net/levels.h. */
typedef struct tess_level_rows {
    int32_t first[TESS_LEVELS], rows[TESS_LEVELS];
} tess_level_rows;

/* The images of a run. */
typedef struct tess_plan_shape {
    int64_t n, h, w;        /* h and w: multiples of the network's grid */
    int64_t d;              /* depth of volumes: a multiple of the network's grid in depth; 0 means 1 */
    bool above, below;      /* for a strip: rows there come from a neighbour (EXCHANGE steps) */
    bool left, right;       /* for a block of an image: so do columns there, and corners */
    bool slices;            /* for a slab of a volume: what comes from a neighbour are slices, not rows */
    tess_level_rows levels; /* for a strip: h is its rows of level 0 */
} tess_plan_shape;

bool tess_plan_shape_same(const tess_plan_shape *a, const tess_plan_shape *b);
static inline bool tess_level_rows_given(const tess_level_rows *levels)
{
    return levels->rows[0] > 0;
}

typedef struct tess_bound tess_bound; /* owned by the caller; keeps pointers to net and device */

tess_status tess_bound_create(const tess_net *net, tess_device *device, tess_dtype dtype, tess_bound **out,
                              tess_error *error) TESS_MUST_CHECK;
void tess_bound_destroy(tess_bound *bound);
/* Takes fused upsampling apart, which cannot be computed for a part of an image whose neighbours exchange rows. Weights that were
 * packed before, and plans, are of no use afterwards. */
tess_status tess_bound_separate_upsampling(tess_bound *bound, tess_error *error) TESS_MUST_CHECK;
/* From now on, plans may multiply fp32 values in TF32; packed weights do not change. */
void tess_bound_allow_tf32(tess_bound *bound);
size_t tess_bound_weight_bytes(const tess_bound *bound);
tess_dtype tess_bound_dtype(const tess_bound *bound);
/* Windows that start at multiples of this, with the halo below, reproduce the whole image bit for bit. */
int64_t tess_bound_alignment(const tess_bound *bound);
/* Pixels on each side that an output value can depend on, bit for bit: the receptive radius, larger where a
 * Winograd block reads more than the exact formula does. TESS_REACH_ALL when a layer depends on the whole
 * image: then no halo makes a tile exact. */
#define TESS_REACH_ALL (INT64_MAX / 4)
int64_t tess_bound_reach(const tess_bound *bound);
/* The same in slices. Windows in depth start at multiples of the network's grid in depth. */
int64_t tess_bound_reach_depth(const tess_bound *bound);
/* The fewest rows of a strip of an image whose neighbours exchange rows inside the network: at every level it has the
 * rows that a neighbour needs. Strips begin at multiples of the alignment. */
int64_t tess_bound_least_strip(const tess_bound *bound);
/* The same for the columns of a block. */
int64_t tess_bound_least_columns(const tess_bound *bound);
/* The same for a slab of a volume, in slices. Slabs begin at multiples of the network's grid in depth. */
int64_t tess_bound_least_slab(const tess_bound *bound);
/* Reads every weight from the file and packs it, in pieces of a few hundred KiB. */
tess_status tess_bound_load(const tess_bound *bound, tess_weights *weights, void *packed,
                            tess_error *error) TESS_MUST_CHECK;
/* The workspace that a plan for this shape would request, computed without placing tensors. */
tess_status tess_bound_workspace(const tess_bound *bound, tess_plan_shape shape, size_t *bytes,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
