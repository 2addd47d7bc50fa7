/* step_nets.h: small networks whose training steps the tests check. Each is built around one thing that a backward pass
 * can get wrong. */
#ifndef TESS_TESTS_STEP_NETS_H
#define TESS_TESTS_STEP_NETS_H

#include "check.h"
#include "device/device.h"
#include "model/diffusion.h"
#include "net/blocks.h"
#include "net/channels.h"

enum { STEP_WIDTH = 8 }; /* channels of most values */

typedef struct step_net {
    const char *name;
    tess_value (*build)(tess_net *net); /* NULL: the diffusion network of tests/data */
    bool batch_norm;                    /* its results depend on how a batch is divided */
    bool fp32;     /* mixes an input or output of the network, which are fp32, with other values */
    int64_t depth; /* of the volumes that it takes; 0: images */
} step_net;

static inline tess_value step_conv(tess_net *net, tess_value in, const char *name, int64_t channels, int side)
{
    return tess_net_conv(
        net, in, (tess_conv_settings){name, channels, TESS_WINDOW_2D(side, 1, side / 2), .bias = true});
}

static inline tess_value step_conv_relu(tess_net *net, tess_value in, const char *name)
{
    return tess_net_activate(net, step_conv(net, in, name, STEP_WIDTH, 3), TESS_RELU);
}

/* x + conv(relu(conv(x))), without biases: DRUNet's. */
static inline tess_value step_residual(tess_net *net, tess_value x, const char *first, const char *second)
{
    const tess_layer_window window = TESS_WINDOW_2D(3, 1, 1);
    tess_value h =
        tess_net_conv(net, x, (tess_conv_settings){first, tess_net_value(net, x)->channels, window});
    h = tess_net_activate(net, h, TESS_RELU);
    h = tess_net_conv(net, h, (tess_conv_settings){second, tess_net_value(net, x)->channels, window});
    return tess_net_add(net, x, h);
}

static inline tess_value step_down(tess_net *net, tess_value in, const char *name, int64_t channels)
{
    return tess_net_conv(net, in, (tess_conv_settings){name, channels, TESS_WINDOW_2D(2, 2, 0)});
}

static inline tess_value step_up(tess_net *net, tess_value in, const char *name, int64_t channels, bool bias)
{
    return tess_net_conv_transpose(net, in,
                                   (tess_conv_settings){name, channels, TESS_WINDOW_2D(2, 2, 0), bias});
}

static inline tess_value build_plain(tess_net *net)
{
    const tess_value h = step_conv_relu(net, tess_net_input(net, 3), "a");
    return step_conv(net, step_conv_relu(net, h, "b"), "c", 3, 3);
}

/* The first layer has a stride whose input gradient nobody needs. */
static inline tess_value build_strides(tess_net *net)
{
    tess_value h =
        tess_net_conv(net, tess_net_input(net, 2),
                      (tess_conv_settings){"first", STEP_WIDTH, TESS_WINDOW_2D(3, 2, 1), .bias = true});
    h = step_down(net, tess_net_activate(net, h, TESS_RELU), "down", 12);
    h = step_up(net, tess_net_activate(net, h, TESS_RELU), "up", STEP_WIDTH, true);
    h = step_conv(net, tess_net_activate(net, h, TESS_RELU), "b", 5, 1);
    return step_up(net, h, "last", 3, false);
}

static inline tess_value build_unet(tess_net *net)
{
    const tess_value skip = step_conv_relu(net, tess_net_input(net, 3), "a");
    tess_value h = step_conv_relu(net, tess_net_max_pool(net, skip), "b");
    h = step_conv_relu(net, tess_net_upsample(net, h), "c");
    return step_conv(net, step_conv_relu(net, tess_net_concat(net, skip, h), "d"), "e", 3, 3);
}

/* Inputs of the network side by side, and values that are in two concatenations, and twice in one. */
static inline tess_value build_concats(tess_net *net)
{
    const tess_value image = tess_net_input(net, 3), map = tess_net_input(net, 1);
    const tess_value h = step_conv_relu(net, tess_net_concat(net, image, map), "a");
    const tess_value g = step_conv_relu(net, h, "b");
    const tess_value hg = tess_net_concat(net, h, g), gh = tess_net_concat(net, g, h);
    const tess_value sum = tess_net_add(net, step_conv(net, hg, "c", STEP_WIDTH, 3),
                                        step_conv(net, tess_net_concat(net, gh, gh), "d", STEP_WIDTH, 3));
    return step_conv(net, tess_net_concat(net, sum, map), "e", 3, 3);
}

/* One value is read by three additions, one of them of itself. */
static inline tess_value build_adds(tess_net *net)
{
    const tess_value h = step_conv(net, tess_net_input(net, 3), "a", STEP_WIDTH, 3);
    const tess_value low = tess_net_upsample(net, tess_net_max_pool(net, h));
    const tess_value one = tess_net_add(net, h, low), two = tess_net_add(net, h, h);
    const tess_value three = tess_net_add(net, step_conv_relu(net, one, "b"), h);
    const tess_value sum = tess_net_add(net, tess_net_activate(net, two, TESS_SILU), three);
    return step_conv(net, tess_net_activate(net, tess_net_add(net, sum, one), TESS_RELU), "c", 3, 3);
}

static inline tess_value build_batch_norms(tess_net *net)
{
    tess_value h = step_conv(net, tess_net_input(net, 3), "a", STEP_WIDTH, 3);
    h = tess_net_activate(net, tess_net_batch_norm(net, h, "a_norm"), TESS_RELU);
    const tess_value skip = tess_net_batch_norm(net, step_conv(net, h, "b", STEP_WIDTH, 3), "b_norm");
    h = tess_net_batch_norm(net, tess_net_upsample(net, tess_net_max_pool(net, skip)), "c_norm");
    h = tess_net_activate(net, tess_net_add(net, h, skip), TESS_SILU);
    return step_conv(net, h, "d", 3, 3);
}

/* Scales and shifts come from an input, and from layers over a vector. */
static inline tess_value build_group_norms(tess_net *net)
{
    const tess_value image = tess_net_input(net, 3), given = tess_net_input_vector(net, 2 * STEP_WIDTH);
    tess_value v = tess_net_activate(net, step_conv(net, given, "v1", STEP_WIDTH, 1), TESS_SILU);
    v = step_conv(net, v, "v2", 2 * STEP_WIDTH, 1);
    tess_value h = step_conv(net, image, "a", STEP_WIDTH, 3);
    h = tess_net_group_norm(net, h, (tess_group_norm_settings){"norm1", .groups = 4, .scale_shift = &given});
    h = step_conv(net, tess_net_activate(net, h, TESS_SILU), "b", STEP_WIDTH, 3);
    const tess_value g =
        tess_net_group_norm(net, h, (tess_group_norm_settings){"norm2", .groups = 2, .scale_shift = &v});
    h = tess_net_add(net, h, step_conv(net, tess_net_activate(net, g, TESS_SILU), "c", STEP_WIDTH, 3));
    h = tess_net_group_norm(net, h, (tess_group_norm_settings){"norm3", .groups = 8, .scale_shift = &v});
    h = tess_net_activate(net, h, TESS_RELU);
    return step_conv(net, tess_net_group_norm(net, h, (tess_group_norm_settings){"norm4", .groups = 1}), "d",
                     3, 3);
}

static inline tess_value build_attention(tess_net *net)
{
    tess_value h = step_conv(net, tess_net_input(net, 3), "a", STEP_WIDTH, 3);
    for (int i = 0; i < 2; i++) {
        tess_value a =
            tess_net_group_norm(net, h, (tess_group_norm_settings){i ? "norm1" : "norm2", .groups = 4});
        a = step_conv(net, a, i ? "qkv1" : "qkv2", 3 * STEP_WIDTH, 1);
        a = tess_net_attention(net, a, (tess_op_attention){2, i == 0});
        h = tess_net_add(net, h, step_conv(net, a, i ? "proj1" : "proj2", STEP_WIDTH, 1));
    }
    return step_conv(net, tess_net_activate(net, h, TESS_SILU), "d", 3, 3);
}

static inline tess_value build_silu(tess_net *net)
{
    const tess_value x = step_conv(net, tess_net_input(net, 3), "a", STEP_WIDTH, 3);
    const tess_value h = tess_net_activate(net, x, TESS_SILU); /* x has another reader, h has two */
    const tess_value g = tess_net_activate(net, step_conv(net, h, "b", STEP_WIDTH, 3), TESS_SILU);
    return step_conv(net, tess_net_add(net, tess_net_add(net, g, h), x), "c", 3, 3);
}

/* The output of a ReLU has many readers; the first of them, which contributes the last gradient, is a convolution. */
static inline tess_value build_relu_conv_first(tess_net *net)
{
    const tess_value h = step_conv_relu(net, tess_net_input(net, 3), "a");
    const tess_value b = step_conv(net, h, "b", STEP_WIDTH, 3);
    const tess_value low = tess_net_upsample(net, tess_net_max_pool(net, h));
    const tess_value c = step_conv_relu(net, tess_net_concat(net, h, low), "c");
    const tess_value d = step_up(net, step_down(net, h, "down", 6), "up", STEP_WIDTH, false);
    return step_conv(net, tess_net_add(net, tess_net_add(net, b, c), tess_net_add(net, d, h)), "e", 3, 3);
}

/* The same with a strided convolution first, then one that has the value also as its residual; the network ends with
 * a ReLU. */
static inline tess_value build_relu_down_first(tess_net *net)
{
    const tess_value h = step_conv_relu(net, tess_net_input(net, 3), "a");
    const tess_value d = step_up(net, step_down(net, h, "down", 6), "up", STEP_WIDTH, false);
    const tess_value r =
        tess_net_activate(net, tess_net_add(net, step_conv(net, h, "b", STEP_WIDTH, 3), h), TESS_RELU);
    const tess_value sum = tess_net_add(net, tess_net_add(net, d, r), h);
    return tess_net_activate(net, step_conv(net, sum, "c", 3, 3), TESS_RELU);
}

/* The same with a pooling first. A further output of the network is read inside it. */
static inline tess_value build_relu_pool_first(tess_net *net)
{
    const tess_value h = step_conv_relu(net, tess_net_input(net, 3), "a");
    const tess_value low = tess_net_max_pool(net, h);
    const tess_value side = step_conv(net, h, "side", STEP_WIDTH, 3);
    tess_net_output(net, side);
    tess_net_output(net, step_conv(net, side, "unused", 2, 1));
    const tess_value b = tess_net_add(net, tess_net_upsample(net, low), side);
    return step_conv(net, tess_net_add(net, b, h), "b", 3, 3);
}

static inline tess_value build_drunet(tess_net *net)
{
    const tess_layer_window window = TESS_WINDOW_2D(3, 1, 1);
    const tess_value x1 =
        tess_net_conv(net, tess_net_input(net, 4), (tess_conv_settings){"head", STEP_WIDTH, window});
    const tess_value x2 = step_down(net, step_residual(net, x1, "d1a", "d1b"), "d1", 12);
    const tess_value x3 = step_down(net, step_residual(net, x2, "d2a", "d2b"), "d2", 16);
    tess_value h = step_residual(net, step_residual(net, x3, "b1a", "b1b"), "b2a", "b2b");
    h = step_up(net, tess_net_add(net, h, x3), "u2", 12, false);
    h = step_up(net, tess_net_add(net, step_residual(net, h, "u2a", "u2b"), x2), "u1", STEP_WIDTH, false);
    h = tess_net_add(net, step_residual(net, h, "u1a", "u1b"), x1);
    return tess_net_conv(net, h, (tess_conv_settings){"tail", 3, window});
}

/* Predicts noise and subtracts it: the factor of the last layer is -1. */
static inline tess_value build_negative(tess_net *net)
{
    const tess_value x = tess_net_input(net, 3);
    tess_value h = step_conv_relu(net, x, "a");
    h = tess_net_activate(net, tess_net_batch_norm(net, step_conv(net, h, "b", STEP_WIDTH, 3), "b_norm"),
                          TESS_RELU);
    h = tess_net_conv(net, h, (tess_conv_settings){"c", 3, TESS_WINDOW_2D(3, 1, 1), true, .scale = -1});
    return tess_net_add(net, x, h);
}

static inline tess_value build_volume(tess_net *net)
{
    const tess_layer_window same = TESS_WINDOW_3D(3, 1, 1), halves = TESS_WINDOW_3D(2, 2, 0);
    tess_value h =
        tess_net_conv(net, tess_net_input(net, 1), (tess_conv_settings){"a", STEP_WIDTH, same, true});
    const tess_value skip = tess_net_activate(net, h, TESS_RELU);
    h = tess_net_conv(net, skip, (tess_conv_settings){"down", 12, halves, true});
    h = tess_net_conv_transpose(net, tess_net_activate(net, h, TESS_RELU),
                                (tess_conv_settings){"up", STEP_WIDTH, halves, true});
    return tess_net_conv(net, tess_net_add(net, h, skip), (tess_conv_settings){"b", 1, same, true});
}

/* Downwards by averages, one of a value that a pooling, a convolution and an addition read too. */
static inline tess_value build_averages(tess_net *net)
{
    const tess_value h = step_conv_relu(net, tess_net_input(net, 3), "a");
    const tess_value low = step_conv_relu(net, tess_net_average_pool(net, h), "b");
    const tess_value side = tess_net_upsample(net, tess_net_max_pool(net, h));
    const tess_value lower = tess_net_upsample(net, tess_net_average_pool(net, low));
    const tess_value sum = tess_net_add(net, step_conv(net, lower, "c", STEP_WIDTH, 3), low);
    const tess_value up = tess_net_add(net, tess_net_upsample(net, sum), side);
    return step_conv(net, tess_net_add(net, step_conv_relu(net, up, "d"), h), "e", 3, 3);
}

/* Between two convolutions, of a value with two readers, of one that a concatenation reads, and at the end of a
 * residual block of the diffusion networks. */
static inline tess_value build_dropouts(tess_net *net)
{
    const tess_value h = tess_net_dropout(net, step_conv_relu(net, tess_net_input(net, 3), "a"), 0.25);
    tess_value g = tess_net_group_norm(net, h, (tess_group_norm_settings){"norm", .groups = 4});
    g = tess_net_dropout(net, tess_net_activate(net, g, TESS_SILU), 0.5);
    const tess_value r = tess_net_add(net, h, step_conv(net, g, "b", STEP_WIDTH, 3));
    const tess_value c = tess_net_concat(net, r, tess_net_dropout(net, r, 0.1));
    return step_conv(net, step_conv_relu(net, c, "c"), "d", 3, 3);
}

static inline tess_value step_map(tess_net *net, tess_value in, const char *name, tess_channel_form form,
                                  bool frozen)
{
    return tess_net_channel_map(
        net, in,
        (tess_channel_settings){
            name, {.form = form, .epsilon = 0.2, .softmax = {3, 5, 0.1, 0.9}}, frozen, 0});
}

static inline tess_value step_matrix(tess_net *net, tess_value in, const char *name, int64_t channels,
                                     bool frozen)
{
    return tess_net_conv(
        net, in, (tess_conv_settings){name, channels, TESS_WINDOW_2D(1, 1, 0), .rank = 2, .frozen = frozen});
}

/* A quadratic score of selected channels, with losses of the score and of the logit, and penalties. */
static inline tess_value build_selector(tess_net *net)
{
    const tess_value x = step_map(net, tess_net_input(net, 13), "scale", TESS_CHANNEL_SCALE, true);
    const tess_value chosen = step_map(net, x, "select", TESS_CHANNEL_SOFTMAX, false);
    const tess_op_softmax softmax = {3, 5, 0.1, 0.9};
    tess_net_add_penalty(net, chosen, (tess_op_penalty){TESS_ENTROPY, 0.1, 1e-6, -1, 1, 13, softmax});
    tess_net_add_penalty(net, chosen, (tess_op_penalty){TESS_DIVERSITY, 4, 1e-6, -1, 1, 13, softmax});
    const tess_value centred = step_map(net, chosen, "mean", TESS_CHANNEL_SHIFT, false);
    const tess_value score =
        tess_net_channel_dot(net, centred, step_matrix(net, centred, "inverse", 13, false), 1);
    const tess_value logit = step_map(net, score, "logit", TESS_CHANNEL_SCALE, false);
    tess_net_add_loss(
        net, (tess_net_loss){logit, TESS_LOSS_OF_DATA, {TESS_BCE_LOGITS, .share = 2, .positive = 3}});
    tess_net_add_loss(net, (tess_net_loss){logit, TESS_LOSS_OF_DATA, {TESS_IOU, 1e-6, .share = 0.5}});
    tess_net_add_loss(net, (tess_net_loss){score, TESS_LOSS_ALONE, {TESS_MEAN, .share = 0.1}});
    return score;
}

/* Deep SVDD, with a frozen matrix before it and a side branch that only a penalty needs. */
static inline tess_value build_svdd(tess_net *net)
{
    const tess_value x = tess_net_input(net, 7);
    const tess_value turned = step_matrix(net, x, "turn", 9, true);
    const tess_value normal = step_map(net, turned, "norm", TESS_CHANNEL_DIVIDE, false);
    tess_value h = tess_net_activate(net, step_conv(net, normal, "first", 16, 1), TESS_RELU);
    h = step_matrix(net, h, "second", 5, false);
    tess_net_add_penalty(net, h, (tess_op_penalty){TESS_ORTHOGONALITY, 0.05, 0, -1, 5, 16, {0}});
    const tess_value far = step_map(net, h, "centre", TESS_CHANNEL_SHIFT, true);
    const tess_value score = tess_net_channel_dot(net, far, far, 0.5);
    tess_net_add_loss(net, (tess_net_loss){step_map(net, score, "radius", TESS_CHANNEL_BOUNDARY, false),
                                           TESS_LOSS_ALONE,
                                           {TESS_MEAN, .share = 1}});
    const tess_value side = step_matrix(net, x, "side", 4, false);
    tess_net_add_penalty(net, side, (tess_op_penalty){TESS_DISTINCTNESS, 0.7, 1e-6, -1, 4, 7, {0}});
    return score;
}

/* Layers whose result should be their input. */
static inline tess_value build_autoencoder(tess_net *net)
{
    const tess_value x = step_map(net, tess_net_input(net, 10), "scale", TESS_CHANNEL_SCALE, true);
    tess_value h = step_map(net, x, "norm1", TESS_CHANNEL_DIVIDE, true);
    h = step_conv(net, step_matrix(net, h, "turn1", 4, true), "first", 4, 1);
    h = step_map(net, h, "norm2", TESS_CHANNEL_DIVIDE, true);
    h = step_conv(net, step_matrix(net, h, "turn2", 10, true), "second", 10, 1);
    tess_net_add_loss(net, (tess_net_loss){h, x, {TESS_MSE, .share = 1.5}});
    return h;
}

static const step_net step_nets[] = {
    {"plain", build_plain, false, false, 0},
    {"strides", build_strides, false, false, 0},
    {"unet", build_unet, false, false, 0},
    {"concats", build_concats, false, true, 0},
    {"adds", build_adds, false, false, 0},
    {"batch-norms", build_batch_norms, true, false, 0},
    {"group-norms", build_group_norms, false, false, 0},
    {"attention", build_attention, false, false, 0},
    {"silu", build_silu, false, false, 0},
    {"relu-conv-first", build_relu_conv_first, false, false, 0},
    {"relu-down-first", build_relu_down_first, false, false, 0},
    {"relu-pool-first", build_relu_pool_first, false, true, 0},
    {"drunet", build_drunet, false, false, 0},
    {"negative", build_negative, true, false, 0},
    {"averages", build_averages, false, false, 0},
    {"dropouts", build_dropouts, false, false, 0},
    {"selector", build_selector, true, false, 0}, /* IOU and penalties are no means over a batch */
    {"svdd", build_svdd, false, false, 0},
    {"autoencoder", build_autoencoder, false, false, 0},
    {"diffusion", NULL, false, false, 0},
    {"volume", build_volume, false, false, 4},
};
enum { STEP_NETS = sizeof step_nets / sizeof step_nets[0] };

/* As it is trained: with the layers over the noise level, and dropout in its residual blocks. */
static inline tess_net *step_diffusion(void)
{
    tess_weights *weights = NULL;
    tess_diffusion_net net = {0};
    tess_error error = {{0}};
    CHECK_MSG(tess_weights_open(TESS_TEST_DATA "/networks/diffusion.safetensors", &weights, &error) ==
                      TESS_OK &&
                  tess_weights_set_metadata(weights, "num_head_channels", "4", &error) == TESS_OK &&
                  tess_diffusion_recognise_trained(weights, 0.1, &net, &error) == TESS_OK,
              "%s", error.text);
    if (!net.step)
        abort();
    tess_weights_close(weights);
    return net.step; /* `embedding` is NULL */
}

/* To be destroyed by the caller. */
static inline tess_net *step_net_make(const step_net *what)
{
    if (!what->build)
        return step_diffusion();
    tess_net *net = tess_net_create();
    tess_error error = {{0}};
    tess_net_train(net);
    CHECK_MSG(tess_net_finish(net, what->build(net), &error) == TESS_OK, "%s: %s", what->name, error.text);
    return net;
}

/* A card has no kernel for the parameter gradients of 3-D convolutions. */
static inline bool step_trains(const tess_device *device, const step_net *what)
{
    return !what->depth || device->host_memory;
}

static inline const step_net *step_net_named(const char *name)
{
    for (int i = 0; i < STEP_NETS; i++)
        if (strcmp(step_nets[i].name, name) == 0)
            return &step_nets[i];
    abort();
}

#endif
