#include "net/net.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/net_impl.h"

static const tess_layer_window PLAIN = TESS_WINDOW_2D(1, 1, 0), HALVES = TESS_WINDOW_2D(2, 2, 0);

tess_net *tess_net_create(void)
{
    return tess_small_alloc(1, sizeof(tess_net));
}

void tess_net_destroy(tess_net *net)
{
    if (!net)
        return;
    tess_small_free(net->layers);
    tess_small_free(net->values);
    tess_small_free(net);
}

static bool grow(void **items, int count, int *capacity, size_t size)
{
    if (count < *capacity)
        return true;
    const int more = *capacity ? 2 * *capacity : 64;
    void *grown = tess_small_realloc(*items, (size_t)more, size);
    if (!grown)
        return false;
    *items = grown;
    *capacity = more;
    return true;
}

static tess_value add_value(tess_net *net, tess_value_info info)
{
    void *values = net->values;
    if (net->failed || !grow(&values, net->value_count, &net->value_capacity, sizeof *net->values)) {
        net->failed = true;
        return -1;
    }
    net->values = values;
    info.root = net->value_count;
    net->values[net->value_count] = info;
    return net->value_count++;
}

/* Adds the layer and its one value. The stride changes the value's resolution: down for +1, up for -1. */
static tess_value append(tess_net *net, tess_layer layer, int64_t channels, int direction)
{
    void *layers = net->layers;
    for (int i = 0; i < layer.inputs; i++)
        net->failed = net->failed || layer.in[i] < 0;
    if (net->failed || !grow(&layers, net->layer_count, &net->layer_capacity, sizeof *net->layers)) {
        net->failed = true;
        return -1;
    }
    net->layers = layers;
    const tess_value_info *in = &net->values[layer.in[0]];
    tess_value_info info = {
        .channels = channels, .producer = net->layer_count, .vector = in->vector, .shared = in->shared};
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        info.down[axis] = in->down[axis] + (layer.window.stride[axis] == 2 ? direction : 0);
    layer.outputs = 1;
    layer.out[0] = add_value(net, info);
    if (layer.scale == 0)
        layer.scale = 1;
    if (layer.out[0] >= 0)
        net->layers[net->layer_count++] = layer;
    return layer.out[0];
}

static int64_t channels_of(const tess_net *net, tess_value value)
{
    return value < 0 ? 0 : net->values[value].channels;
}

static tess_value add_input(tess_net *net, int64_t channels, bool vector, bool shared)
{
    const tess_value_info info = {.channels = channels, .producer = -1, .vector = vector, .shared = shared};
    const tess_value value = net->input_count < TESS_NET_ENDS ? add_value(net, info) : -1;
    if (value < 0)
        net->failed = true;
    else
        net->inputs[net->input_count++] = value;
    return value;
}

tess_value tess_net_input(tess_net *net, int64_t channels)
{
    return add_input(net, channels, false, false);
}

tess_value tess_net_input_vector(tess_net *net, int64_t channels)
{
    return add_input(net, channels, true, false);
}

tess_value tess_net_input_shared(tess_net *net, int64_t channels)
{
    return add_input(net, channels, true, true);
}

tess_value tess_net_slice(tess_net *net, tess_value vector, int64_t first, int64_t channels)
{
    if (net->failed || vector < 0 || !net->values[vector].vector || first < 0 ||
        first + channels > net->values[vector].channels) {
        net->failed = true;
        return -1;
    }
    tess_value_info info = net->values[vector];
    const tess_value root = info.root;
    info.channels = channels;
    info.offset += first;
    info.view = true;
    const tess_value value = add_value(net, info);
    if (value >= 0)
        net->values[value].root = root;
    return value;
}

void tess_net_keep(tess_net *net, tess_value input)
{
    if (input >= 0)
        net->values[input].kept = true;
}

static tess_value conv_like(tess_net *net, tess_op_kind kind, tess_value in, tess_conv_settings settings,
                            int direction)
{
    tess_layer layer = {.kind = kind,
                        .inputs = 1,
                        .in = {in},
                        .window = settings.window,
                        .bias = settings.bias,
                        .slices = settings.window.kernel[TESS_DEPTH],
                        .rank = settings.rank,
                        .frozen = settings.frozen,
                        .scale = settings.scale};
    snprintf(layer.name, sizeof layer.name, "%s", settings.name);
    return append(net, layer, settings.channels, direction);
}

tess_value tess_net_conv(tess_net *net, tess_value in, tess_conv_settings settings)
{
    return conv_like(net, TESS_OP_CONV, in, settings, 1);
}

tess_value tess_net_conv_transpose(tess_net *net, tess_value in, tess_conv_settings settings)
{
    return conv_like(net, TESS_OP_CONV_TRANSPOSE, in, settings, -1);
}

tess_value tess_net_batch_norm(tess_net *net, tess_value in, const char *name)
{
    tess_layer layer = {.kind = TESS_OP_BATCH_NORM, .inputs = 1, .in = {in}, .window = PLAIN};
    snprintf(layer.name, sizeof layer.name, "%s", name);
    return append(net, layer, channels_of(net, in), 0);
}

tess_value tess_net_activate(tess_net *net, tess_value in, tess_activation activation)
{
    const tess_layer layer = {
        .kind = TESS_OP_ACTIVATE, .inputs = 1, .in = {in}, .window = PLAIN, .activation = activation};
    return append(net, layer, channels_of(net, in), 0);
}

tess_value tess_net_add(tess_net *net, tess_value a, tess_value b)
{
    const tess_layer layer = {.kind = TESS_OP_ADD, .inputs = 2, .in = {a, b}, .window = PLAIN};
    return append(net, layer, channels_of(net, a), 0);
}

tess_value tess_net_concat(tess_net *net, tess_value first, tess_value second)
{
    const tess_layer layer = {.kind = TESS_OP_CONCAT, .inputs = 2, .in = {first, second}, .window = PLAIN};
    return append(net, layer, channels_of(net, first) + channels_of(net, second), 0);
}

tess_value tess_net_max_pool(tess_net *net, tess_value in)
{
    const tess_layer layer = {.kind = TESS_OP_MAX_POOL, .inputs = 1, .in = {in}, .window = HALVES};
    return append(net, layer, channels_of(net, in), 1);
}

tess_value tess_net_average_pool(tess_net *net, tess_value in)
{
    const tess_layer layer = {.kind = TESS_OP_AVERAGE_POOL, .inputs = 1, .in = {in}, .window = HALVES};
    return append(net, layer, channels_of(net, in), 1);
}

tess_value tess_net_dropout(tess_net *net, tess_value in, double rate)
{
    const tess_layer layer = {
        .kind = TESS_OP_DROPOUT, .inputs = 1, .in = {in}, .window = PLAIN, .rate = rate};
    return append(net, layer, channels_of(net, in), 0);
}

tess_value tess_net_upsample(tess_net *net, tess_value in)
{
    const tess_layer layer = {.kind = TESS_OP_UPSAMPLE, .inputs = 1, .in = {in}, .window = HALVES};
    return append(net, layer, channels_of(net, in), -1);
}

tess_value tess_net_layer_add(tess_net *net, const tess_layer *layer, int64_t channels)
{
    tess_layer added = *layer;
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        if (added.window.stride[axis] == 0)
            added.window.kernel[axis] = added.window.stride[axis] = 1;
    return append(net, added, channels, 0);
}

void tess_net_output(tess_net *net, tess_value value)
{
    if (value < 0 || net->output_count == TESS_NET_ENDS)
        net->failed = true;
    else
        net->outputs[net->output_count++] = value;
}

void tess_net_train(tess_net *net)
{
    net->trained = true;
}

bool tess_net_is_trained(const tess_net *net)
{
    return net->trained;
}

tess_status tess_net_finish(tess_net *net, tess_value out, tess_error *error)
{
    tess_net_output(net, out);
    if (net->failed)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a network's layers, or too many outputs");
    tess_net_fuse(net);
    return TESS_OK;
}

int tess_net_uses(const tess_net *net, tess_value value)
{
    int uses = 0;
    for (int i = 0; i < net->output_count; i++)
        uses += net->outputs[i] == value;
    for (int i = 0; i < net->value_count; i++)
        uses += net->values[i].view && net->values[i].root == value;
    for (int i = 0; i < net->loss_count; i++)
        uses += (net->losses[i].value == value) + (net->losses[i].target == value);
    for (int i = 0; i < net->layer_count; i++) {
        const tess_layer *layer = &net->layers[i];
        for (int k = 0; k < layer->inputs && !layer->dropped; k++)
            uses += layer->in[k] == value;
    }
    return uses;
}

int tess_net_layer_count(const tess_net *net)
{
    return net->layer_count;
}

const tess_layer *tess_net_layer(const tess_net *net, int index)
{
    return &net->layers[index];
}

int tess_net_value_count(const tess_net *net)
{
    return net->value_count;
}

const tess_value_info *tess_net_value(const tess_net *net, tess_value value)
{
    return &net->values[value];
}

int tess_net_input_count(const tess_net *net)
{
    return net->input_count;
}

int tess_net_output_count(const tess_net *net)
{
    return net->output_count;
}

tess_value tess_net_input_value(const tess_net *net, int index)
{
    return net->inputs[index];
}

tess_value tess_net_output_value(const tess_net *net, int index)
{
    return net->outputs[index];
}

bool tess_net_is_end(const tess_net *net, tess_value value)
{
    bool end = net->values[value].producer < 0;
    for (int i = 0; i < net->output_count; i++)
        end = end || net->outputs[i] == value;
    return end;
}

int64_t tess_net_grid(const tess_net *net, int axis)
{
    int most = 0;
    for (int v = 0; v < net->value_count; v++)
        if (net->values[v].down[axis] > most)
            most = net->values[v].down[axis];
    return (int64_t)1 << most;
}

bool tess_net_is_volume(const tess_net *net)
{
    for (int i = 0; i < net->layer_count; i++)
        if (!net->layers[i].dropped && net->layers[i].window.kernel[TESS_DEPTH] > 1)
            return true;
    return false;
}
