/* net_impl.h: the network's body, for the files of this room. */
#ifndef TESS_NET_NET_IMPL_H
#define TESS_NET_NET_IMPL_H

#include "net/net.h"

struct tess_net {
    tess_layer *layers;
    tess_value_info *values;
    int layer_count, value_count, capacity; /* one capacity for both: each layer makes one value */
    tess_value input, output;
    bool failed;
};

/* How many layers still read `value` (the output counts as one more). */
int tess_net_uses(const tess_net *net, tess_value value);
/* Folds, fuses and drops layers; called once by finish. False when a concatenation cannot share storage. */
bool tess_net_fuse(tess_net *net);

#endif
