/* Builders of layers that depend on the whole image. */
#include "net/blocks.h"

#include <stdio.h>

tess_value tess_net_group_norm(tess_net *net, tess_value in, tess_group_norm_settings settings)
{
    tess_layer layer = {.kind = TESS_OP_GROUP_NORM,
                        .inputs = settings.scale_shift ? 2 : 1,
                        .in = {in, settings.scale_shift ? *settings.scale_shift : 0},
                        .group_norm = {settings.groups, settings.epsilon > 0 ? settings.epsilon : 1e-5}};
    snprintf(layer.name, sizeof layer.name, "%s", settings.name);
    return tess_net_layer_add(net, &layer, in < 0 ? 0 : tess_net_value(net, in)->channels);
}

tess_value tess_net_attention(tess_net *net, tess_value in, tess_op_attention settings)
{
    const tess_layer layer = {.kind = TESS_OP_ATTENTION, .inputs = 1, .in = {in}, .attention = settings};
    return tess_net_layer_add(net, &layer, in < 0 ? 0 : tess_net_value(net, in)->channels / 3);
}
