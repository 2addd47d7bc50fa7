/* bound_impl.h: the body of tess_bound, for the files of this room. */
#ifndef TESS_NET_BOUND_IMPL_H
#define TESS_NET_BOUND_IMPL_H

#include "net/plan.h"

struct tess_bound {
    const tess_net *net;
    tess_device *device;
    tess_dtype dtype;
    bool tf32;
    size_t weight_bytes;
    int64_t alignment;
    size_t *weight_at; /* of each layer, in the packed block */
    int *block;        /* of each layer: what the device's kernel repeats by */
    int *enlarges;     /* of each layer: 1 + the upsampling that its op does as well; 0: none */
    bool *enlarged;    /* of each upsampling: another layer's op does it */
};

/* The network's input and output are fp32 in every precision: a rounded image would cost more than all that
 * is computed in between. */
tess_dtype tess_value_dtype(const tess_net *net, tess_value value, tess_dtype dtype);
/* The smallest shape that the network takes: what needs no size is asked of this one. */
tess_plan_shape tess_smallest_shape(const tess_net *net);
/* A value's tensor: dense, or some channels of its root's storage. */
tess_tensor tess_value_tensor(const tess_net *net, tess_value value, tess_dtype dtype, tess_plan_shape shape);
/* The op of a layer for one batch and image size. */
tess_op tess_layer_op(const tess_net *net, const tess_layer *layer, tess_dtype dtype, tess_plan_shape shape);
/* The same on this device, where a layer may take its upsampling along. */
tess_op tess_bound_op(const tess_bound *bound, int layer, tess_plan_shape shape);
bool tess_bound_runs(const tess_bound *bound, int layer);
tess_value tess_bound_input(const tess_bound *bound, int layer);
/* Is there anything left to do for it? */
bool tess_layer_runs(const tess_layer *layer);
bool tess_layer_has_weights(const tess_layer *layer);

#endif
