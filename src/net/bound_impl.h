/* bound_impl.h: the body of tess_bound, for the files of this room. */
#ifndef TESS_NET_BOUND_IMPL_H
#define TESS_NET_BOUND_IMPL_H

#include "net/bound.h"

struct tess_bound {
    const tess_net *net;
    tess_device *device;
    tess_dtype dtype;
    bool tf32;
    size_t weight_bytes;
    int64_t alignment;
    size_t *weight_at;   /* of each layer, in the packed block */
    int *block;          /* of each layer: what the device's kernel repeats by */
    int *fused_upsample; /* of each layer: 1 + the upsampling that its op does as well; 0: none */
    bool *fused;         /* of each upsampling: another layer's op does it */
};

/* The smallest shape that the network takes: what needs no size is asked of this one. */
tess_plan_shape tess_smallest_shape(const tess_net *net);
/* The network's inputs and outputs are fp32 in every precision: a rounded image would cost more than all that is computed in
 * between. */
tess_dtype tess_value_dtype(const tess_net *net, tess_value value, tess_dtype dtype);
/* A value's tensor without rows of neighbours: dense, or some channels of its root's storage. */
tess_tensor tess_value_tensor(const tess_net *net, tess_value value, tess_dtype dtype, tess_plan_shape shape);
/* The op of a layer for one batch and image size, the whole image being there. */
tess_op tess_bound_op(const tess_bound *bound, int layer, tess_plan_shape shape);
/* Is there an op for it? Not for what was fused into another layer. */
bool tess_bound_runs(const tess_bound *bound, int layer);
/* The value that the op reads first: the layer's, or that of the upsampling which it does as well. */
tess_value tess_bound_input(const tess_bound *bound, int layer);

#endif
