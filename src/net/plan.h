/* plan.h: a network bound to a device and a precision, and its plans for image sizes.
 *
 * tess_bound holds what does not depend on the size: where each layer's packed weights lie. A plan is a
 * value: the ops with their shapes, the offset of every tensor in one arena, the workspace. A run needs three
 * blocks of memory of the planned sizes and allocates nothing. */
#ifndef TESS_NET_PLAN_H
#define TESS_NET_PLAN_H

#include "device/device.h"
#include "net/net.h"
#include "weights/weights.h"

typedef enum tess_plan_mode { TESS_INFER, TESS_TRAIN } tess_plan_mode;

typedef struct tess_bound tess_bound;       /* owned by the caller; keeps pointers to net and device */
typedef struct tess_net_plan tess_net_plan; /* owned by the caller: tess_net_plan_destroy */

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
 * a Winograd block reads further than the mathematics does. */
int64_t tess_bound_reach(const tess_bound *bound);
/* The same in slices. Windows in depth start at multiples of the network's grid in depth. */
int64_t tess_bound_reach_depth(const tess_bound *bound);
/* Reads every weight from the file into packed form, in pieces of a few hundred KiB. */
tess_status tess_bound_load(const tess_bound *bound, tess_weights *weights, void *packed,
                            tess_error *error) TESS_MUST_CHECK;

typedef struct tess_plan_shape {
    int64_t n, h, w; /* h and w: multiples of the network's grid */
    tess_plan_mode mode;
    int64_t d; /* of volumes: a multiple of the network's grid in depth; 0 is 1 */
} tess_plan_shape;

/* The workspace that a plan for this shape would ask for, without placing anything. */
tess_status tess_bound_workspace(const tess_bound *bound, tess_plan_shape shape, size_t *bytes,
                                 tess_error *error) TESS_MUST_CHECK;

tess_status tess_net_plan_create(const tess_bound *bound, tess_plan_shape shape, tess_net_plan **out,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_net_plan_destroy(tess_net_plan *plan);
size_t tess_net_plan_arena_bytes(const tess_net_plan *plan);
size_t tess_net_plan_workspace_bytes(const tess_net_plan *plan);
/* The least any placement could need: how good the arena is. */
size_t tess_net_plan_lower_bound(const tess_net_plan *plan);
tess_tensor tess_net_plan_input(const tess_net_plan *plan, size_t *offset);
tess_tensor tess_net_plan_output(const tess_net_plan *plan, size_t *offset);
int tess_net_plan_op_count(const tess_net_plan *plan);
const tess_op *tess_net_plan_op(const tess_net_plan *plan, int index);

/* Binds every op to its kernel; after this the plan can run. */
tess_status tess_net_plan_prepare(tess_net_plan *plan, tess_error *error) TESS_MUST_CHECK;
/* Where the device is the host, ends early when the device's `stop` says so; the next sync then fails. */
void tess_net_plan_run(const tess_net_plan *plan, void *arena, void *workspace, const void *weights,
                       tess_stream *stream);
/* The same, and adds `units` to what that `stop` counts as done, layer by layer as they are computed. */
void tess_net_plan_run_counted(const tess_net_plan *plan, void *arena, void *workspace, const void *weights,
                               tess_stream *stream, int64_t units);

#endif
