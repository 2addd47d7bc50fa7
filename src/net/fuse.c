/* Folding and fusing. A layer that only changes the end of the convolution before it is dropped: that
 * convolution then writes the dropped layer's value itself. Concatenation costs nothing: its inputs are
 * written into its storage. */
#include <stdio.h>
#include <string.h>

#include "net/net_impl.h"

static bool is_conv(const tess_layer *layer)
{
    return !layer->dropped && (layer->kind == TESS_LAYER_CONV || layer->kind == TESS_LAYER_CONV_TRANSPOSE);
}

/* The convolution that makes `value` for nobody but its one reader; NULL when there is none. */
static tess_layer *sole_conv(tess_net *net, tess_value value)
{
    tess_layer *layer = &net->layers[net->values[value].producer];
    return is_conv(layer) && layer->out == value && tess_net_uses(net, value) == 1 ? layer : NULL;
}

static void absorb(tess_net *net, tess_layer *conv, tess_layer *end)
{
    conv->out = end->out;
    net->values[end->out].producer = (int)(conv - net->layers);
    end->dropped = true;
}

static void fold_norm(tess_net *net, tess_layer *norm)
{
    tess_layer *conv = sole_conv(net, norm->in);
    if (!conv || conv->norm[0] || conv->relu || conv->residuals)
        return;
    memcpy(conv->norm, norm->name, sizeof conv->norm);
    absorb(net, conv, norm);
}

static void fuse_relu(tess_net *net, tess_layer *relu)
{
    tess_layer *conv = sole_conv(net, relu->in);
    if (!conv || conv->relu)
        return;
    conv->relu = true;
    conv->keep_output = true;
    absorb(net, conv, relu);
}

/* The later of the two operands takes the earlier one as a residual. */
static void fuse_add(tess_net *net, tess_layer *add)
{
    tess_value late = add->in, early = add->residual[0];
    if (net->values[late].producer < net->values[early].producer) {
        late = add->residual[0];
        early = add->in;
    }
    tess_layer *conv = sole_conv(net, late);
    if (!conv || conv->relu || conv->residuals == TESS_OP_RESIDUALS)
        return;
    conv->residual[conv->residuals++] = early;
    absorb(net, conv, add);
}

/* Both inputs live in the storage of the result, side by side. A value can live in one storage only, and the
 * network's input is filled from outside as a dense tensor: what asks for more than that is refused. */
static bool share_storage(tess_net *net, tess_layer *concat)
{
    tess_value parts[2] = {concat->in, concat->residual[0]};
    int64_t offset = 0;
    for (int i = 0; i < 2; i++) {
        bool free = net->values[parts[i]].root == parts[i] && parts[i] != net->input &&
                    net->layers[net->values[parts[i]].producer].kind != TESS_LAYER_CONCAT;
        if (!free)
            return false;
        net->values[parts[i]].root = concat->out;
        net->values[parts[i]].offset = offset;
        offset += net->values[parts[i]].channels;
    }
    concat->dropped = true;
    return true;
}

bool tess_net_fuse(tess_net *net)
{
    for (int i = 0; i < net->layer_count; i++) {
        tess_layer *layer = &net->layers[i];
        if (layer->kind == TESS_LAYER_BATCH_NORM)
            fold_norm(net, layer);
        else if (layer->kind == TESS_LAYER_RELU)
            fuse_relu(net, layer);
        else if (layer->kind == TESS_LAYER_ADD)
            fuse_add(net, layer);
        else if (layer->kind == TESS_LAYER_CONCAT && !share_storage(net, layer))
            return false;
    }
    return true;
}
