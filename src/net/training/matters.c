/* Which values of a network its losses depend on. Others, such as the score of a pipeline that is trained by another loss, are not
 * computed in training. */
#include "net/training/matters.h"

#include "base/mem.h"
#include "net/channels.h"
#include "net/training.h"

/* Such a layer changes what it keeps, whether its result is used or not. */
static bool has_effect(const tess_layer *layer)
{
    return layer->follows > 0 || layer->kind == TESS_OP_BATCH_NORM;
}

void tess_values_matter(const tess_net *net, tess_matter matter, bool *matters)
{
    if (!tess_net_loss_count(net))
        matters[tess_net_output_value(net, tess_net_output_count(net) - 1)] = true;
    for (int i = 0; i < tess_net_loss_count(net); i++) {
        const tess_net_loss *loss = tess_net_loss_at(net, i);
        matters[loss->value] = true;
        if (loss->target >= 0 && matter == TESS_MATTERS_TO_STEP)
            matters[loss->target] = true;
    }
    for (int i = tess_net_layer_count(net) - 1; i >= 0; i--) {
        const tess_layer *layer = tess_net_layer(net, i);
        if (layer->dropped)
            continue;
        if (matter == TESS_MATTERS_TO_STEP && has_effect(layer))
            matters[layer->out[0]] = true;
        for (int k = 0; k < layer->inputs && matters[layer->out[0]]; k++)
            matters[layer->in[k]] = true;
    }
}

static bool is_affine(const tess_layer *layer)
{
    const tess_layer_window *w = &layer->window;
    bool point = true;
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        point = point && w->kernel[axis] == 1 && w->stride[axis] == 1;
    if (layer->activation != TESS_LINEAR || layer->follows > 0)
        return false;
    return layer->kind == TESS_OP_CHANNEL_MAP
               ? layer->channel_map.form != TESS_CHANNEL_BOUNDARY
               : (layer->kind == TESS_OP_CONV && point) || layer->kind == TESS_OP_ADD;
}

bool tess_net_is_quadratic(const tess_net *net)
{
    bool *matters = tess_small_alloc((size_t)tess_net_value_count(net), sizeof *matters),
         quadratic = matters && tess_net_loss_count(net) > 0 && tess_net_input_count(net) == 1;
    if (quadratic)
        tess_values_matter(net, TESS_MATTERS_TO_STEP, matters);
    for (int i = 0; i < tess_net_loss_count(net) && quadratic; i++)
        quadratic = tess_net_loss_at(net, i)->loss.kind == TESS_MSE && tess_net_loss_at(net, i)->target >= 0;
    for (int i = 0; i < tess_net_layer_count(net) && quadratic; i++) {
        const tess_layer *layer = tess_net_layer(net, i);
        quadratic = layer->dropped || !matters[layer->out[0]] || is_affine(layer);
    }
    tess_small_free(matters);
    return quadratic;
}
