/* blocks.h: builder calls for layers that depend on the whole image; net.h has those for layers that read a
 * window. A network with such a layer cannot be computed exactly in tiles: tess_bound_reach is TESS_REACH_ALL. */
#ifndef TESS_NET_BLOCKS_H
#define TESS_NET_BLOCKS_H

#include "net/net.h"

typedef struct tess_group_norm_settings {
    const char *name; /* name of the weights: name.weight, name.bias */
    int groups;
    double epsilon;                /* 0 means 1e-5 */
    const tess_value *scale_shift; /* a vector of 2 c channels: scales, then shifts; NULL: none */
} tess_group_norm_settings;

/* Adds a group norm. An activation after it is fused into it. */
tess_value tess_net_group_norm(tess_net *net, tess_value in, tess_group_norm_settings settings);

/* Adds attention over an input of queries, keys and values side by side: 3 c channels become c. */
tess_value tess_net_attention(tess_net *net, tess_value in, tess_op_attention settings);

#endif
