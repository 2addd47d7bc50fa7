/* net_impl.h: the struct tess_net, for the files of this room. */
#ifndef TESS_NET_NET_IMPL_H
#define TESS_NET_NET_IMPL_H

#include "net/channels.h"

struct tess_net {
    tess_layer *layers;
    tess_value_info *values;
    int layer_count, layer_capacity, value_count, value_capacity;
    tess_value inputs[TESS_NET_ENDS], outputs[TESS_NET_ENDS];
    int input_count, output_count;
    tess_net_loss losses[TESS_NET_LOSSES];
    tess_net_penalty penalties[TESS_NET_LOSSES];
    int loss_count, penalty_count;
    bool failed;
    bool trained; /* will be trained: see tess_net_train */
};

/* Number of layers that still read `value` (an output counts as one more). */
int tess_net_uses(const tess_net *net, tess_value value);
/* Folds, fuses and drops layers; finish calls it once. */
void tess_net_fuse(tess_net *net);

#endif
