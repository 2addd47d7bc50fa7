/* bound.h: a network bound to a device and a precision: what does not depend on the image's size. Where each layer's packed
 * weights lie, how far an output value looks, what windows must be aligned to. */
#ifndef TESS_NET_BOUND_H
#define TESS_NET_BOUND_H

#include "device/device.h"
#include "net/net.h"
#include "weights/weights.h"

typedef enum tess_plan_mode { TESS_INFER, TESS_TRAIN } tess_plan_mode;

/* Of the images in a run. */
typedef struct tess_plan_shape {
    int64_t n, h, w; /* h and w: multiples of the network's grid */
    tess_plan_mode mode;
    int64_t d;         /* of volumes: a multiple of the network's grid in depth; 0 is 1 */
    bool above, below; /* a strip: the image goes on there, and rows come from a neighbour (EXCHANGE steps) */
} tess_plan_shape;

typedef struct tess_bound tess_bound; /* owned by the caller; keeps pointers to net and device */

tess_status tess_bound_create(const tess_net *net, tess_device *device, tess_dtype dtype, tess_bound **out,
                              tess_error *error) TESS_MUST_CHECK;
void tess_bound_destroy(tess_bound *bound);
/* From now on its plans may take products of fp32 values in TF32; packed weights stay as they are. */
void tess_bound_allow_tf32(tess_bound *bound);
size_t tess_bound_weight_bytes(const tess_bound *bound);
tess_dtype tess_bound_dtype(const tess_bound *bound);
/* Windows that start at multiples of this, and keep the halo below, reproduce the whole image bit for bit. */
int64_t tess_bound_alignment(const tess_bound *bound);
/* Pixels on each side that an output value can depend on, to the last bit: the receptive radius, grown where
 * a Winograd block reads further than the mathematics does. TESS_REACH_ALL when a layer looks at everything: then no halo
 * makes a tile exact. */
#define TESS_REACH_ALL (INT64_MAX / 4)
int64_t tess_bound_reach(const tess_bound *bound);
/* The same in slices. Windows in depth start at multiples of the network's grid in depth. */
int64_t tess_bound_reach_depth(const tess_bound *bound);
/* Reads every weight from the file into packed form, in pieces of a few hundred KiB. */
tess_status tess_bound_load(const tess_bound *bound, tess_weights *weights, void *packed,
                            tess_error *error) TESS_MUST_CHECK;
/* The workspace that a plan for this shape would ask for, without placing anything. */
tess_status tess_bound_workspace(const tess_bound *bound, tess_plan_shape shape, size_t *bytes,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
