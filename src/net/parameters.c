#include "net/parameters.h"

#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "base/mem.h"
#include "net/net_impl.h"

enum { PARTS = 4 }; /* most parameters of a layer */

/* Adds the parameter `part` of the layer at the end of its block. */
static void add(tess_parameters *p, int index, const tess_layer *layer, const char *part, int rank,
                const int64_t *dims)
{
    tess_parameter *one = &p->list[p->count++];
    *one = (tess_parameter){.layer = index, .rank = rank, .elements = 1, .factor = 1};
    snprintf(one->name, sizeof one->name, "%s.%s", layer->name, part);
    for (int i = 0; i < rank; i++) {
        one->dims[i] = dims[i];
        one->elements *= dims[i];
    }
    if (layer->scale < 0)
        one->factor = -1;
}

static void list_kernel(tess_parameters *p, const tess_net *net, int index, const tess_layer *layer)
{
    const tess_layer_window *w = &layer->window;
    const int64_t in = net->values[layer->in[0]].channels, out = net->values[layer->out[0]].channels;
    const bool transposed = layer->kind == TESS_OP_CONV_TRANSPOSE, deep = w->kernel[TESS_DEPTH] > 1;
    int64_t dims[5] = {transposed ? in : out, transposed ? out : in};
    int rank = 2;
    for (int axis = deep ? TESS_DEPTH : TESS_HEIGHT; axis < TESS_SPATIAL; axis++)
        dims[rank++] = w->kernel[axis];
    add(p, index, layer, "weight", layer->rank ? layer->rank : rank, dims); /* without axes of size 1 */
    if (layer->bias)
        add(p, index, layer, "bias", 1, &out);
}

static void list_norm(tess_parameters *p, const tess_net *net, int index, const tess_layer *layer)
{
    const int64_t channels = net->values[layer->out[0]].channels;
    add(p, index, layer, "weight", 1, &channels);
    add(p, index, layer, "bias", 1, &channels);
    if (layer->kind != TESS_OP_BATCH_NORM)
        return;
    add(p, index, layer, "running_mean", 1, &channels);
    add(p, index, layer, "running_var", 1, &channels);
    p->list[p->count - 1].running = p->list[p->count - 2].running = true;
}

static void list_channels(tess_parameters *p, const tess_net *net, int index, const tess_layer *layer)
{
    const int64_t channels = net->values[layer->out[0]].channels;
    add(p, index, layer, "weight", 1, &channels);
    if (tess_channel_has_bias(layer->channel_map.form))
        add(p, index, layer, "bias", 1, &channels);
}

tess_status tess_parameters_list(const tess_net *net, tess_parameters *out, tess_error *error)
{
    *out = (tess_parameters){.list =
                                 tess_small_alloc((size_t)(net->layer_count + 1) * PARTS, sizeof *out->list)};
    if (!out->list)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the list of parameters");
    for (int i = 0; i < net->layer_count; i++) {
        const tess_layer *layer = &net->layers[i];
        const int first = out->count;
        if (layer->dropped)
            continue;
        if (layer->kind == TESS_OP_CONV || layer->kind == TESS_OP_CONV_TRANSPOSE)
            list_kernel(out, net, i, layer);
        else if (layer->kind == TESS_OP_BATCH_NORM || layer->kind == TESS_OP_GROUP_NORM)
            list_norm(out, net, i, layer);
        else if (layer->kind == TESS_OP_CHANNEL_MAP)
            list_channels(out, net, i, layer);
        for (int k = first; k < out->count && layer->frozen; k++)
            out->list[k].running = true;
        out->trained = tess_round_up(out->trained, TESS_PARAMETER_ALIGN);
        for (int k = first; k < out->count; k++) {
            int64_t *end = out->list[k].running ? &out->running : &out->trained;
            out->list[k].offset = *end;
            *end += out->list[k].elements;
        }
    }
    out->trained = tess_round_up(out->trained, TESS_PARAMETER_ALIGN);
    return TESS_OK;
}

void tess_parameters_clear(tess_parameters *parameters)
{
    tess_small_free(parameters->list);
    *parameters = (tess_parameters){0};
}

const tess_parameter *tess_parameters_of(const tess_parameters *parameters, int layer, bool running)
{
    for (int i = 0; i < parameters->count; i++)
        if (parameters->list[i].layer == layer && parameters->list[i].running == running)
            return &parameters->list[i];
    return NULL;
}

static bool same_shape(const tess_parameter *parameter, const tess_weight *weight)
{
    bool same = weight->rank == parameter->rank;
    for (int i = 0; same && i < weight->rank; i++)
        same = weight->dims[i] == parameter->dims[i];
    return same;
}

tess_status tess_parameters_read(const tess_parameters *parameters, tess_weights *weights, float *trained,
                                 float *running, tess_error *error)
{
    for (int i = 0; i < parameters->count; i++) {
        const tess_parameter *one = &parameters->list[i];
        const tess_weight *weight = tess_weights_find(weights, one->name);
        if (!weight)
            return tess_fail(error, TESS_BAD_INPUT, "%s: tensor %s is missing", tess_weights_path(weights),
                             one->name);
        if (!same_shape(one, weight))
            return tess_fail(error, TESS_BAD_INPUT, "%s: tensor %s has another shape than this network's",
                             tess_weights_path(weights), one->name);
        float *to = (one->running ? running : trained) + one->offset;
        TESS_TRY(tess_weights_read(weights, weight, 0, one->elements, to, error));
        for (int64_t k = 0; k < one->elements; k++) {
            if (!isfinite(to[k]))
                return tess_fail(error, TESS_BAD_INPUT, "%s: tensor %s holds NaN or infinity",
                                 tess_weights_path(weights), one->name);
            to[k] *= one->factor;
        }
    }
    return TESS_OK;
}
