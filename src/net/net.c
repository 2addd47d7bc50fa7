#include "net/net.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "net/net_impl.h"

tess_net *tess_net_create(void)
{
    tess_net *net = tess_small_alloc(1, sizeof *net);
    if (net)
        net->input = net->output = -1;
    return net;
}

void tess_net_destroy(tess_net *net)
{
    if (!net)
        return;
    tess_small_free(net->layers);
    tess_small_free(net->values);
    tess_small_free(net);
}

static bool grow(tess_net *net)
{
    if (net->layer_count < net->capacity)
        return true;
    int capacity = net->capacity ? 2 * net->capacity : 64;
    tess_layer *layers = tess_small_realloc(net->layers, (size_t)capacity, sizeof *layers);
    if (layers)
        net->layers = layers;
    tess_value_info *values = tess_small_realloc(net->values, (size_t)capacity, sizeof *values);
    if (values)
        net->values = values;
    if (!layers || !values)
        return false;
    net->capacity = capacity;
    return true;
}

/* Every layer makes one value; `down` is the change of resolution, in powers of two. */
static tess_value append(tess_net *net, tess_layer layer, int64_t channels, int down)
{
    if (net->failed || !grow(net)) {
        net->failed = true;
        return -1;
    }
    tess_value value = net->value_count++;
    int level = layer.in >= 0 ? net->values[layer.in].down + down : 0;
    int level_d = layer.in >= 0 ? net->values[layer.in].down_d + (layer.stride_d == 2 ? down : 0) : 0;
    if (layer.stride_d == 0)
        layer.kernel_d = layer.stride_d = layer.slices = 1;
    layer.map = -1;
    layer.out = value;
    if (layer.scale == 0)
        layer.scale = 1;
    net->values[value] = (tess_value_info){channels, level, net->layer_count, value, 0, level_d, false};
    net->layers[net->layer_count++] = layer;
    return value;
}

/* A layer over `in`, or one that fails when `in` did. */
static tess_layer layer_over(tess_net *net, tess_layer_kind kind, tess_value in)
{
    if (in < 0)
        net->failed = true;
    return (tess_layer){.kind = kind, .in = in, .kernel = 1, .stride = 1};
}

static int64_t channels_of(const tess_net *net, tess_value value)
{
    return value < 0 ? 0 : net->values[value].channels;
}

tess_value tess_net_input(tess_net *net, int64_t channels)
{
    tess_layer layer = {.kind = TESS_LAYER_INPUT, .in = -1, .kernel = 1, .stride = 1};
    net->input = append(net, layer, channels, 0);
    return net->input;
}

static tess_value conv_like(tess_net *net, tess_layer_kind kind, tess_value in, tess_conv_settings settings,
                            int down)
{
    tess_layer layer = layer_over(net, kind, in);
    snprintf(layer.name, sizeof layer.name, "%s", settings.name);
    layer.kernel = settings.kernel;
    layer.stride = settings.stride;
    layer.pad = settings.pad;
    if (settings.kernel_d) {
        layer.kernel_d = layer.slices = settings.kernel_d;
        layer.stride_d = settings.stride_d;
        layer.pad_d = settings.pad_d;
    }
    layer.bias = settings.bias;
    layer.scale = settings.scale;
    layer.keep_input = true;
    return append(net, layer, settings.channels, down);
}

tess_value tess_net_conv(tess_net *net, tess_value in, tess_conv_settings settings)
{
    return conv_like(net, TESS_LAYER_CONV, in, settings, settings.stride == 2);
}

tess_value tess_net_conv_transpose(tess_net *net, tess_value in, tess_conv_settings settings)
{
    return conv_like(net, TESS_LAYER_CONV_TRANSPOSE, in, settings, -1);
}

tess_value tess_net_batch_norm(tess_net *net, tess_value in, const char *name)
{
    tess_layer layer = layer_over(net, TESS_LAYER_BATCH_NORM, in);
    snprintf(layer.name, sizeof layer.name, "%s", name);
    layer.keep_input = true;
    return append(net, layer, channels_of(net, in), 0);
}

tess_value tess_net_relu(tess_net *net, tess_value in)
{
    tess_layer layer = layer_over(net, TESS_LAYER_RELU, in);
    layer.keep_output = true;
    return append(net, layer, channels_of(net, in), 0);
}

static tess_value two_inputs(tess_net *net, tess_layer_kind kind, tess_value a, tess_value b,
                             int64_t channels)
{
    tess_layer layer = layer_over(net, kind, a);
    if (b < 0)
        net->failed = true;
    layer.residual[0] = b;
    layer.residuals = 1;
    return append(net, layer, channels, 0);
}

tess_value tess_net_add(tess_net *net, tess_value a, tess_value b)
{
    return two_inputs(net, TESS_LAYER_ADD, a, b, channels_of(net, a));
}

tess_value tess_net_concat(tess_net *net, tess_value first, tess_value second)
{
    return two_inputs(net, TESS_LAYER_CONCAT, first, second,
                      channels_of(net, first) + channels_of(net, second));
}

tess_value tess_net_max_pool(tess_net *net, tess_value in)
{
    tess_layer layer = layer_over(net, TESS_LAYER_MAX_POOL, in);
    layer.kernel = layer.stride = 2;
    layer.keep_input = true;
    return append(net, layer, channels_of(net, in), 1);
}

tess_value tess_net_upsample(tess_net *net, tess_value in)
{
    tess_layer layer = layer_over(net, TESS_LAYER_UPSAMPLE, in);
    layer.kernel = layer.stride = 2;
    return append(net, layer, channels_of(net, in), -1);
}

tess_status tess_net_finish(tess_net *net, tess_value out, tess_error *error)
{
    if (net->failed || out < 0)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a network's layers");
    net->output = out;
    if (!tess_net_fuse(net))
        return tess_fail(error, TESS_INTERNAL,
                         "a concatenation of the input or of another one is not supported");
    return TESS_OK;
}

int tess_net_uses(const tess_net *net, tess_value value)
{
    int uses = net->output == value;
    for (int i = 0; i < net->layer_count; i++) {
        const tess_layer *layer = &net->layers[i];
        if (layer->dropped)
            continue;
        uses += layer->in == value;
        for (int r = 0; r < layer->residuals; r++)
            uses += layer->residual[r] == value;
        uses += layer->map == value;
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

tess_value tess_net_input_value(const tess_net *net)
{
    return net->input;
}

tess_value tess_net_output_value(const tess_net *net)
{
    return net->output;
}

int64_t tess_net_grid(const tess_net *net)
{
    int most = 0;
    for (int v = 0; v < net->value_count; v++)
        if (net->values[v].down > most)
            most = net->values[v].down;
    return (int64_t)1 << most;
}

int64_t tess_net_grid_depth(const tess_net *net)
{
    int most = 0;
    for (int v = 0; v < net->value_count; v++)
        if (net->values[v].down_d > most)
            most = net->values[v].down_d;
    return (int64_t)1 << most;
}

bool tess_net_is_volume(const tess_net *net)
{
    for (int i = 0; i < net->layer_count; i++)
        if (!net->layers[i].dropped && net->layers[i].kernel_d > 1)
            return true;
    return false;
}
