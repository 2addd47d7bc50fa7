#include "net/channels.h"

#include <stdio.h>

#include "net/net_impl.h"

tess_value tess_net_channel_map(tess_net *net, tess_value in, tess_channel_settings settings)
{
    tess_layer layer = {.kind = TESS_OP_CHANNEL_MAP,
                        .inputs = 1,
                        .in = {in},
                        .channel_map = settings.map,
                        .frozen = settings.frozen,
                        .follows = settings.follows};
    snprintf(layer.name, sizeof layer.name, "%s", settings.name);
    const tess_value out = tess_net_layer_add(net, &layer, in < 0 ? 0 : net->values[in].channels);
    if (out >= 0) /* inputs are fp32: what lies far from 0 is centred before it is rounded */
        net->values[out].wide = net->values[in].wide || net->values[in].producer < 0;
    return out;
}

tess_value tess_net_channel_dot(tess_net *net, tess_value a, tess_value b, double factor)
{
    const tess_layer layer = {
        .kind = TESS_OP_CHANNEL_DOT, .inputs = 2, .in = {a, b}, .channel_dot = {factor}};
    const tess_value out = tess_net_layer_add(net, &layer, 1);
    if (out >= 0)
        net->values[out].wide = true;
    return out;
}

tess_value tess_net_widen(tess_net *net, tess_value value)
{
    if (value >= 0)
        net->values[value].wide = true;
    return value;
}

void tess_net_add_loss(tess_net *net, tess_net_loss loss)
{
    if (loss.value < 0 || net->loss_count == TESS_NET_LOSSES)
        net->failed = true;
    else
        net->losses[net->loss_count++] = loss;
    tess_net_widen(net, loss.value);
}

void tess_net_add_penalty(tess_net *net, tess_value made, tess_op_penalty penalty)
{
    if (made < 0 || net->values[made].producer < 0 || net->penalty_count == TESS_NET_LOSSES)
        net->failed = true;
    else
        net->penalties[net->penalty_count++] = (tess_net_penalty){net->values[made].producer, penalty};
}

int tess_net_loss_count(const tess_net *net)
{
    return net->loss_count;
}

const tess_net_loss *tess_net_loss_at(const tess_net *net, int index)
{
    return &net->losses[index];
}

int tess_net_penalty_count(const tess_net *net)
{
    return net->penalty_count;
}

const tess_net_penalty *tess_net_penalty_at(const tess_net *net, int index)
{
    return &net->penalties[index];
}
