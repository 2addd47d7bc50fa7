/* network_impl.h: a network of a pipeline while it is built, for network*.c. */
#ifndef TESS_MODEL_SPECTRAL_NETWORK_IMPL_H
#define TESS_MODEL_SPECTRAL_NETWORK_IMPL_H

#include "model/spectral/network.h"
#include "net/channels.h"

typedef struct tess_builder {
    const tess_spectral_plan *plan;
    const bool *trained; /* NULL: for scores */
    tess_net *net;
    int at;
    tess_value value[TESS_PIPELINE_NODES], input; /* -1: not built yet */
    tess_value layer[TESS_PIPELINE_NODES];        /* what the layer makes whose weights a penalty is on */
} tess_builder;

/* Begins with the input alone. */
tess_status tess_builder_begin(tess_builder *b, const tess_spectral_plan *plan, const bool *trained,
                               tess_error *error) TESS_MUST_CHECK;
/* What a node gives, with all layers before it. */
tess_value tess_builder_value(tess_builder *b, int node);
/* Refuses a node whose way from the data leaves that of the score before the network begins. */
tess_status tess_builder_reaches(const tess_builder *b, int node, tess_error *error) TESS_MUST_CHECK;
/* A map of channels with the parameters NODE.WHAT. `fixed`: never trained. */
tess_value tess_builder_map(const tess_builder *b, int node, const char *what, tess_value in,
                            tess_op_channel_map how, bool fixed);
tess_op_softmax tess_selector_softmax(const tess_node *node);

#endif
