#include "model/spectral/network.h"

#include <stdio.h>
#include <string.h>

#include "model/spectral/network_impl.h"

/* True for a node that layers can do. */
static bool is_layer(const tess_node *node)
{
    return tess_node_is_affine(node) || node->kind == TESS_NODE_MLP;
}

static int place_before(const tess_spectral_plan *plan, int node)
{
    int at = plan->pipeline.nodes[node].from;
    while (at != TESS_NODE_DATA && is_layer(&plan->pipeline.nodes[at]))
        at = plan->pipeline.nodes[at].from;
    return at;
}

int tess_spectral_network_at(const tess_spectral_plan *plan)
{
    return place_before(plan, tess_pipeline_score(&plan->pipeline));
}

bool tess_spectral_by_network(const tess_spectral_plan *plan)
{
    const tess_node *nodes = plan->pipeline.nodes;
    const int score = tess_pipeline_score(&plan->pipeline);
    bool needed = nodes[score].kind == TESS_NODE_SVDD || nodes[score].kind == TESS_NODE_RESIDUAL;
    for (int at = score; at != TESS_NODE_DATA && (at == score || is_layer(&nodes[at])); at = nodes[at].from)
        needed |= tess_node_trainable(&nodes[at]) || nodes[at].kind == TESS_NODE_MLP;
    return needed;
}

int tess_spectral_score_at(const tess_spectral_plan *plan)
{
    const int score = tess_pipeline_score(&plan->pipeline);
    const tess_node *node = &plan->pipeline.nodes[score];
    return tess_node_scope_of(node) == TESS_SCOPE_LOCAL ? node->from
           : tess_spectral_by_network(plan)             ? tess_spectral_network_at(plan)
                                                        : tess_spectral_cut_before(plan, score);
}

static const char *name_of(const tess_builder *b, int node, const char *what, char *name)
{
    snprintf(name, TESS_LAYER_NAME, "%s.%s", b->plan->pipeline.nodes[node].name, what);
    return name;
}

static bool frozen(const tess_builder *b, int node)
{
    return b->trained && !b->trained[node];
}

tess_value tess_builder_map(const tess_builder *b, int node, const char *what, tess_value in,
                            tess_op_channel_map how, bool fixed)
{
    char name[TESS_LAYER_NAME];
    return tess_net_channel_map(b->net, in,
                                (tess_channel_settings){.name = name_of(b, node, what, name),
                                                        .map = how,
                                                        .frozen = b->trained && (fixed || frozen(b, node))});
}

static tess_value scale(const tess_builder *b, int node, const char *what, tess_value in, bool fixed)
{
    return tess_builder_map(b, node, what, in, (tess_op_channel_map){.form = TESS_CHANNEL_SCALE}, fixed);
}

static tess_value shift(const tess_builder *b, int node, const char *what, tess_value in, bool fixed)
{
    return tess_builder_map(b, node, what, in, (tess_op_channel_map){.form = TESS_CHANNEL_SHIFT}, fixed);
}

static tess_value matrix(const tess_builder *b, int node, const char *what, tess_value in, int64_t channels,
                         bool bias, bool fixed)
{
    char name[TESS_LAYER_NAME];
    return tess_net_conv(b->net, in,
                         (tess_conv_settings){.name = name_of(b, node, what, name),
                                              .channels = channels,
                                              .window = TESS_WINDOW_2D(1, 1, 0),
                                              .bias = bias,
                                              .rank = 2,
                                              .frozen = b->trained && (fixed || frozen(b, node))});
}

tess_op_softmax tess_selector_softmax(const tess_node *node)
{
    return (tess_op_softmax){node->values[TESS_SELECTOR_SELECT], node->values[TESS_SELECTOR_TEMPERATURE],
                             node->values[TESS_SELECTOR_LEAST], node->values[TESS_SELECTOR_DECAY]};
}

static tess_value add_selector(tess_builder *b, int i, tess_value in)
{
    const tess_node *node = &b->plan->pipeline.nodes[i];
    if (frozen(b, i) || !b->trained)
        return scale(b, i, "factors", in, true);
    return b->layer[i] = tess_builder_map(
               b, i, "logits", in,
               (tess_op_channel_map){.form = TESS_CHANNEL_SOFTMAX, .softmax = tess_selector_softmax(node)},
               false);
}

/* In fp32: bands differ by much more than the later components. */
static tess_value add_pca(tess_builder *b, int i, tess_value in)
{
    const tess_value centred = tess_net_widen(b->net, shift(b, i, "mean", in, true)),
                     out = tess_net_widen(
                         b->net, matrix(b, i, "components", centred, b->plan->channels[i], false, false));
    b->layer[i] = out;
    return b->plan->pipeline.nodes[i].values[TESS_PCA_WHITEN] != 0 ? scale(b, i, "whiten", out, true) : out;
}

static tess_value add_linear(tess_builder *b, int i, tess_value in)
{
    const tess_node *node = &b->plan->pipeline.nodes[i];
    const tess_op_channel_map divide = {.form = TESS_CHANNEL_DIVIDE,
                                        .epsilon = node->values[TESS_LINEAR_EPS]};
    const int64_t channels = b->plan->channels[i];
    const tess_value turned =
        matrix(b, i, "projection", tess_builder_map(b, i, "norm", in, divide, true), channels, false, true);
    return b->layer[i] = matrix(b, i, "weight", turned, channels, true, false);
}

static tess_value add_mlp(tess_builder *b, int i, tess_value in)
{
    const int64_t hidden = (int64_t)b->plan->pipeline.nodes[i].values[TESS_MLP_HIDDEN];
    const tess_value h = tess_net_activate(b->net, matrix(b, i, "first", in, hidden, true, false), TESS_RELU);
    return matrix(b, i, "second", h, b->plan->channels[i], false, false);
}

/* In fp32: the terms of an inverse are much larger than their sum. */
static tess_value add_quadratic(tess_builder *b, int i, tess_value in, const char *what)
{
    const tess_value centred = tess_net_widen(b->net, shift(b, i, "mean", in, false)),
                     turned = matrix(b, i, what, centred, tess_spectral_reads(b->plan, i), false, false);
    return tess_net_channel_dot(b->net, centred, tess_net_widen(b->net, turned), 1);
}

static tess_value add_svdd(tess_builder *b, int i, tess_value in)
{
    char name[TESS_LAYER_NAME];
    const double follows = b->trained ? b->plan->pipeline.nodes[i].values[TESS_SVDD_FOLLOWS] : 0;
    const tess_value far = tess_net_channel_map(
        b->net, in,
        (tess_channel_settings){
            name_of(b, i, "centre", name), {.form = TESS_CHANNEL_SHIFT}, b->trained != NULL, follows});
    return tess_net_channel_dot(b->net, tess_net_widen(b->net, far), far, 1);
}

static tess_value add_residual(tess_builder *b, int i, tess_value in)
{
    const tess_value target = tess_builder_value(b, b->plan->pipeline.nodes[i].target),
                     negative = tess_net_widen(b->net, scale(b, i, "negative", target, true)),
                     difference = tess_net_add(b->net, tess_net_widen(b->net, in), negative);
    return tess_net_channel_dot(b->net, tess_net_widen(b->net, difference), difference,
                                1.0 / tess_spectral_reads(b->plan, i));
}

/* The value that a node gives; -1: it cannot be had by layers. */
static tess_value add_node(tess_builder *b, int i, tess_value in)
{
    const tess_node *node = &b->plan->pipeline.nodes[i];
    switch (node->kind) {
    case TESS_NODE_MINMAX:
        return scale(b, i, "scale", in, true);
    case TESS_NODE_ZSCORE:
        return tess_builder_map(
            b, i, "norm", in,
            (tess_op_channel_map){.form = TESS_CHANNEL_DIVIDE, .epsilon = node->values[TESS_ZSCORE_EPS]},
            false);
    case TESS_NODE_SAVITZKY_GOLAY:
    case TESS_NODE_BANDPASS:
        return tess_net_widen(b->net, matrix(b, i, "matrix", in, b->plan->channels[i], false, true));
    case TESS_NODE_PCA:
        return add_pca(b, i, in);
    case TESS_NODE_SELECTOR:
        return add_selector(b, i, in);
    case TESS_NODE_LINEAR:
        return add_linear(b, i, in);
    case TESS_NODE_MLP:
        return add_mlp(b, i, in);
    case TESS_NODE_RX:
        return add_quadratic(b, i, in, "inverse");
    case TESS_NODE_LAD:
        return add_quadratic(b, i, in, "laplacian");
    case TESS_NODE_SVDD:
        return add_svdd(b, i, in);
    case TESS_NODE_RESIDUAL:
        return add_residual(b, i, in);
    case TESS_NODE_SCORE_TO_LOGIT:
        return scale(b, i, "logit", in, false);
    case TESS_NODE_SIGMOID:
    case TESS_NODE_UNIT_NORM:
    case TESS_NODE_SNV:
    case TESS_NODE_CONTINUUM:
    case TESS_NODE_BINARY:
    case TESS_NODE_QUANTILE:
    case TESS_NODE_TWO_STAGE:
    case TESS_NODE_FALSE_ALARM:
    case TESS_NODE_METRICS:
    case TESS_NODE_BCE:
    case TESS_NODE_IOU:
    case TESS_NODE_MSE:
    case TESS_NODE_SOFT_BOUNDARY:
    case TESS_NODE_ORTHOGONALITY:
    case TESS_NODE_DISTINCTNESS:
    case TESS_NODE_ENTROPY:
    case TESS_NODE_DIVERSITY:
    case TESS_NODE_KINDS:
        break;
    }
    return -1;
}

tess_value tess_builder_value(tess_builder *b, int i)
{
    if (i == b->at)
        return b->input;
    if (i == TESS_NODE_DATA)
        return -1; /* before the network */
    if (b->value[i] < 0)
        b->value[i] = add_node(b, i, tess_builder_value(b, b->plan->pipeline.nodes[i].from));
    return b->value[i];
}

tess_status tess_builder_begin(tess_builder *b, const tess_spectral_plan *plan, const bool *trained,
                               tess_error *error)
{
    *b = (tess_builder){.plan = plan, .trained = trained, .net = tess_net_create()};
    if (!b->net)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the network of a pipeline");
    b->at = tess_spectral_network_at(plan);
    memset(b->value, -1, sizeof b->value);
    memset(b->layer, -1, sizeof b->layer);
    b->input = tess_net_input(b->net, tess_spectral_gives(plan, b->at));
    return TESS_OK;
}

tess_status tess_builder_reaches(const tess_builder *b, int node, tess_error *error)
{
    const tess_node *nodes = b->plan->pipeline.nodes;
    for (int at = node; at != b->at; at = nodes[at].from)
        if (at == TESS_NODE_DATA ||
            (tess_node_kinds[nodes[at].kind].gives == TESS_PORT_SPECTRA && !is_layer(&nodes[at])))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "node '%s': lies before '%s' or beside it, which gradients do not pass; use a node behind it",
                node == TESS_NODE_DATA ? "data" : nodes[node].name,
                b->at == TESS_NODE_DATA ? "data" : nodes[b->at].name);
    return TESS_OK;
}

tess_status tess_spectral_scorer(const tess_spectral_plan *plan, tess_net **net, tess_error *error)
{
    tess_builder b;
    const int score = tess_pipeline_score(&plan->pipeline);
    const tess_node *node = &plan->pipeline.nodes[score];
    *net = NULL;
    TESS_TRY(tess_builder_begin(&b, plan, NULL, error));
    tess_status status =
        node->target >= TESS_NODE_DATA ? tess_builder_reaches(&b, node->target, error) : TESS_OK;
    if (status == TESS_OK)
        status = tess_net_finish(b.net, tess_builder_value(&b, score), error);
    if (status == TESS_OK)
        *net = b.net;
    else
        tess_net_destroy(b.net);
    return status;
}
