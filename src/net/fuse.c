/* Folding and fusing. A dropout is left out of a network that is not trained. A layer that only changes the result of the layer before it is dropped: that layer then
 * writes the dropped layer's value directly. Concatenation costs nothing where its inputs can be written into
 * its storage. */
#include <string.h>

#include "net/net_impl.h"

static bool is_conv(const tess_layer *layer)
{
    return !layer->dropped && (layer->kind == TESS_OP_CONV || layer->kind == TESS_OP_CONV_TRANSPOSE);
}

static tess_layer *producer_of(tess_net *net, tess_value value)
{
    const int producer = net->values[value].producer;
    return producer < 0 ? NULL : &net->layers[producer];
}

/* Returns the layer that produces `value`, if `value` has only one reader; else NULL. */
static tess_layer *sole_producer(tess_net *net, tess_value value)
{
    tess_layer *layer = producer_of(net, value);
    return layer && !layer->dropped && layer->out[0] == value && tess_net_uses(net, value) == 1 ? layer
                                                                                                : NULL;
}

static tess_layer *sole_conv(tess_net *net, tess_value value)
{
    tess_layer *layer = sole_producer(net, value);
    return layer && is_conv(layer) ? layer : NULL;
}

static void absorb(tess_net *net, tess_layer *layer, tess_layer *end)
{
    layer->out[0] = end->out[0];
    net->values[end->out[0]].producer = (int)(layer - net->layers);
    end->dropped = true;
}

/* Whatever reads the layer's value reads its input instead. */
static void leave_out(tess_net *net, tess_layer *layer)
{
    for (int i = 0; i < net->layer_count; i++)
        for (int k = 0; k < net->layers[i].inputs; k++)
            if (net->layers[i].in[k] == layer->out[0])
                net->layers[i].in[k] = layer->in[0];
    for (int i = 0; i < net->output_count; i++)
        if (net->outputs[i] == layer->out[0])
            net->outputs[i] = layer->in[0];
    layer->dropped = true;
}

static void fold_norm(tess_net *net, tess_layer *norm)
{
    tess_layer *conv = sole_conv(net, norm->in[0]);
    if (!conv || conv->norm[0] || conv->activation != TESS_LINEAR || conv->inputs > 1)
        return;
    memcpy(conv->norm, norm->name, sizeof conv->norm);
    absorb(net, conv, norm);
}

/* The convolutions of every device can end with a ReLU, and norms with any activation; other activations are
 * separate ops. */
static bool ends_with(const tess_layer *layer, tess_activation activation)
{
    const bool may_end_with_relu = is_conv(layer) || layer->kind == TESS_OP_BATCH_NORM;
    return (may_end_with_relu && activation == TESS_RELU) || layer->kind == TESS_OP_GROUP_NORM;
}

static void fuse_activation(tess_net *net, tess_layer *end)
{
    tess_layer *layer = sole_producer(net, end->in[0]);
    if (!layer || layer->activation != TESS_LINEAR || !ends_with(layer, end->activation))
        return;
    layer->activation = end->activation;
    absorb(net, layer, end);
}

/* The producer of the later operand takes the earlier one as a residual. */
static void fuse_add(tess_net *net, tess_layer *add)
{
    tess_value late = add->in[0], early = add->in[1];
    if (net->values[late].producer < net->values[early].producer) {
        late = add->in[1];
        early = add->in[0];
    }
    tess_layer *conv = sole_conv(net, late);
    if (!conv || conv->activation != TESS_LINEAR || conv->inputs == 1 + TESS_OP_RESIDUALS ||
        add->inputs != 2 || net->values[early].channels != net->values[late].channels)
        return;
    conv->in[conv->inputs++] = early;
    absorb(net, conv, add);
}

/* Moves a value, and what lies in its storage, into the storage of `root`. */
static void move_storage(tess_net *net, tess_value value, tess_value root, int64_t offset)
{
    for (int v = 0; v < net->value_count; v++)
        if (net->values[v].root == value) {
            net->values[v].root = root;
            net->values[v].offset += offset;
        }
}

/* Places all inputs side by side in the storage of the result. A value can be in one storage only, and an input
 * of the network is filled from outside as a dense tensor: in these cases the plan copies instead. Images that were
 * concatenated before are copied too: one storage for all would live as long as the longest of them. */
static void share_storage(tess_net *net, tess_layer *concat)
{
    int64_t offset = 0;
    bool all = true;
    for (int i = 0; i < concat->inputs; i++) {
        const tess_layer *producer = producer_of(net, concat->in[i]);
        bool shared = net->values[concat->in[i]].root == concat->in[i] && producer &&
                      (producer->kind != TESS_OP_CONCAT || net->values[concat->in[i]].vector) &&
                      !tess_net_is_end(net, concat->in[i]);
        for (int k = 0; k < i; k++)
            shared = shared && concat->in[k] != concat->in[i];
        if (shared)
            move_storage(net, concat->in[i], concat->out[0], offset);
        all = all && shared;
        offset += net->values[concat->in[i]].channels;
    }
    concat->dropped = all;
}

void tess_net_fuse(tess_net *net)
{
    for (int i = 0; i < net->layer_count && !net->trained; i++)
        if (net->layers[i].kind == TESS_OP_DROPOUT)
            leave_out(net, &net->layers[i]);
    for (int i = 0; i < net->layer_count; i++) {
        tess_layer *layer = &net->layers[i];
        if (layer->kind == TESS_OP_BATCH_NORM && !net->trained)
            fold_norm(net, layer);
        else if (layer->kind == TESS_OP_ACTIVATE)
            fuse_activation(net, layer);
        else if (layer->kind == TESS_OP_ADD)
            fuse_add(net, layer);
        else if (layer->kind == TESS_OP_CONCAT && !net->trained)
            share_storage(net, layer);
    }
}
