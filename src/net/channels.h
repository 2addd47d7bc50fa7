/* channels.h: builder calls for networks over the spectra of pixels, and for what such a network is trained by: losses on any of
 * its values, and penalties on parameters. A network without losses is trained by the loss of the settings, on its last
 * output (net/training.h). */
#ifndef TESS_NET_CHANNELS_H
#define TESS_NET_CHANNELS_H

#include "net/net.h"

typedef struct tess_channel_settings {
    const char *name; /* name of the weights: name.weight, name.bias */
    tess_op_channel_map map;
    bool frozen;
    double follows; /* of a SHIFT: see tess_layer */
} tess_channel_settings;

tess_value tess_net_channel_map(tess_net *net, tess_value in, tess_channel_settings settings);
/* Keeps a value fp32 in every precision; returns it. A convolution between two such values is computed in fp32, one to or from
 * a narrow value in the narrow type with fp32 sums. Values of losses, and what maps of channels make of them or of an input, are. */
tess_value tess_net_widen(tess_net *net, tess_value value);
/* factor * the sum over channels of a b; fp32 in every precision. */
tess_value tess_net_channel_dot(tess_net *net, tess_value a, tess_value b, double factor);

enum { TESS_NET_LOSSES = 8, TESS_LOSS_OF_DATA = -1, TESS_LOSS_ALONE = -2 };

/* A loss of a value; `share` is its weight. */
typedef struct tess_net_loss {
    tess_value value;
    tess_value
        target; /* a value that needs no gradient, TESS_LOSS_OF_DATA: the step's target, TESS_LOSS_ALONE: none */
    tess_op_loss loss;
} tess_net_loss;

/* A penalty on the first parameter of a layer. */
typedef struct tess_net_penalty {
    int layer;
    tess_op_penalty penalty;
} tess_net_penalty;

void tess_net_add_loss(tess_net *net, tess_net_loss loss);
/* `made`: a value that the layer makes. */
void tess_net_add_penalty(tess_net *net, tess_value made, tess_op_penalty penalty);
int tess_net_loss_count(const tess_net *net);
const tess_net_loss *tess_net_loss_at(const tess_net *net, int index);
int tess_net_penalty_count(const tess_net *net);
const tess_net_penalty *tess_net_penalty_at(const tess_net *net, int index);

#endif
