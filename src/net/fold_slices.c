/* A 3-D kernel whose side slices hold one constant is a 2-D kernel and a sum: conv3d = conv2d on the slice +
 * constant * (the sum of the neighbour slices over window and channels), one value for all output channels. The
 * convolution keeps its middle slice and adds the map computed by a SIDE_SUM layer before it. This needs a
 * third of the products and gives the same result up to rounding. All kernels of 2-D networks made 3-D have
 * this form. */
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "net/net_impl.h"
#include "weights/weights_format.h"

enum { PIECE = 16384 }; /* floats */

/* True when every side tap among the values, which begin at element `first`, equals *side. */
static bool all_equal(const float *values, int64_t first, int64_t count, int64_t area, int64_t slices,
                      float side)
{
    for (int64_t i = 0; i < count; i++)
        if ((first + i) / area % slices != slices / 2 && values[i] != side)
            return false;
    return true;
}

static tess_status find_side(tess_weights *weights, const tess_weight *weight, float *side, bool *found,
                             tess_error *error)
{
    *found = tess_weights_inflated_side(weights, weight, side);
    if (*found || weight->elements == 0)
        return TESS_OK;
    float *values = tess_small_alloc(PIECE, sizeof *values);
    if (!values)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to look at %s", weight->name);
    const int64_t slices = weight->dims[2], area = weight->dims[3] * weight->dims[4];
    tess_status status = tess_weights_read(weights, weight, 0, 1, side, error);
    *found = true;
    for (int64_t first = 0; first < weight->elements && status == TESS_OK && *found; first += PIECE) {
        const int64_t count = tess_min_i64(PIECE, weight->elements - first);
        status = tess_weights_read(weights, weight, first, count, values, error);
        *found = status == TESS_OK && all_equal(values, first, count, area, slices, *side);
    }
    tess_small_free(values);
    return status;
}

/* Returns the weights of a layer that might be folded; NULL when it has another form. */
static const tess_weight *candidate(const tess_layer *layer, const tess_weights *weights)
{
    const tess_layer_window *w = &layer->window;
    bool centred = !layer->dropped && layer->kind == TESS_OP_CONV && !layer->norm[0] && !layer->mapped &&
                   w->kernel[TESS_DEPTH] > 1;
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        centred = centred && w->kernel[axis] % 2 && w->stride[axis] == 1 &&
                  w->pad_before[axis] == w->kernel[axis] / 2 && w->pad_after[axis] == w->kernel[axis] / 2;
    if (!centred)
        return NULL;
    char name[TESS_LAYER_NAME + 32];
    memcpy(name, layer->name, sizeof layer->name);
    strcat(name, ".weight");
    const tess_weight *weight = tess_weights_find(weights, name);
    return weight && weight->rank == 5 && weight->dims[2] == w->kernel[TESS_DEPTH] ? weight : NULL;
}

/* Appends a layer to the new list. */
static void put(tess_net *net, tess_layer *layers, int *count, tess_layer layer)
{
    if (!layer.dropped)
        net->values[layer.out[0]].producer = (int)*count;
    layers[(*count)++] = layer;
}

static void put_folded(tess_net *net, tess_layer *layers, int *count, tess_layer conv, double side)
{
    if (side != 0) {
        const tess_value map = net->value_count++, sums = net->value_count++;
        tess_value_info info = net->values[conv.in[0]];
        info.channels = 1;
        info.root = map;
        info.offset = 0;
        info.wide = true;
        net->values[map] = info;
        info.root = sums;
        info.producer = *count;
        info.kept = info.view = false;
        net->values[sums] = info; /* stored by plans for slabs only */
        put(net, layers, count,
            (tess_layer){.kind = TESS_OP_SIDE_SUM,
                         .inputs = 1,
                         .outputs = 1,
                         .in = {conv.in[0]},
                         .out = {map},
                         .window = conv.window,
                         .slices = conv.slices,
                         .side = side * (double)conv.scale,
                         .sums = 1 + sums,
                         .scale = conv.scale});
        conv.in[conv.inputs++] = map;
        conv.mapped = true;
    }
    conv.window.kernel[TESS_DEPTH] = 1;
    conv.window.pad_before[TESS_DEPTH] = conv.window.pad_after[TESS_DEPTH] = 0;
    put(net, layers, count, conv);
}

tess_status tess_net_fold_slices(tess_net *net, tess_weights *weights, tess_error *error)
{
    /* There are at most one new layer and two new values for each existing layer. */
    const size_t most = 2 * (size_t)net->layer_count + (size_t)net->value_count;
    tess_layer *layers = tess_small_alloc(most, sizeof *layers);
    tess_value_info *values = tess_small_realloc(net->values, most, sizeof *values);
    if (values)
        net->values = values;
    if (!layers || !values) {
        tess_small_free(layers);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a network's layers");
    }
    int count = 0;
    tess_status status = TESS_OK;
    for (int i = 0; i < net->layer_count; i++) {
        const tess_weight *weight = candidate(&net->layers[i], weights);
        float side = 0;
        bool folded = false;
        if (weight && status == TESS_OK)
            status = find_side(weights, weight, &side, &folded, error);
        if (folded)
            put_folded(net, layers, &count, net->layers[i], side);
        else
            put(net, layers, &count, net->layers[i]);
    }
    tess_small_free(net->layers);
    net->layers = layers;
    net->layer_count = count;
    net->layer_capacity = net->value_capacity = (int)most;
    return status;
}
