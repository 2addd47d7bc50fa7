/* bound_impl.h: the struct tess_bound, for the files of this room. */
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
    size_t *weight_at;   /* for each layer: offset in the packed block */
    int *block;          /* for each layer: block size of the device's kernel */
    int *fused_upsample; /* for each layer: 1 + the upsampling fused into its op; 0: none */
    bool *fused;         /* for each upsampling: it is fused into another layer's op */
};

/* The smallest shape that the network accepts, used for queries that do not depend on the size. */
tess_plan_shape tess_smallest_shape(const tess_net *net);
/* The network's inputs and outputs are fp32 in every precision: rounding the image would cost more accuracy
 * than everything computed in between. */
tess_dtype tess_value_dtype(const tess_net *net, tess_value value, tess_dtype dtype);
/* The tensor of a value without rows of neighbours: dense, or some channels of its root's storage. */
tess_tensor tess_value_tensor(const tess_net *net, tess_value value, tess_dtype dtype, tess_plan_shape shape);
/* The op of a layer for one batch and image size, for a whole image. */
tess_op tess_bound_op(const tess_bound *bound, int layer, tess_plan_shape shape);
/* True when the layer has an op of its own, that is, was not fused into another layer. */
bool tess_bound_runs(const tess_bound *bound, int layer);
/* The first value that the op reads: the layer's first input, or that of the fused upsampling. */
tess_value tess_bound_input(const tess_bound *bound, int layer);

#endif
