/* kinds_facts.c: what follows from the kind and the settings of nodes. */
#include <string.h>

#include "model/spectral/pipeline.h"

const char *tess_port_name(tess_port port)
{
    static const char *const names[] = {"spectra", "scores", "decisions", "nothing"};
    return names[port];
}

tess_node_scope tess_node_scope_of(const tess_node *node)
{
    switch (node->kind) {
    case TESS_NODE_MINMAX:
        return (tess_node_scope)node->values[TESS_MINMAX_OVER];
    case TESS_NODE_ZSCORE:
        return (tess_node_scope)node->values[TESS_ZSCORE_OVER];
    case TESS_NODE_RX:
        return (tess_node_scope)node->values[TESS_RX_OVER];
    case TESS_NODE_PCA:
    case TESS_NODE_SELECTOR:
    case TESS_NODE_LINEAR:
    case TESS_NODE_MLP:
    case TESS_NODE_SVDD:
    case TESS_NODE_SOFT_BOUNDARY:
    case TESS_NODE_LAD:
    case TESS_NODE_SCORE_TO_LOGIT:
    case TESS_NODE_FALSE_ALARM:
        return TESS_SCOPE_SET;
    case TESS_NODE_SIGMOID:
    case TESS_NODE_QUANTILE:
    case TESS_NODE_TWO_STAGE:
        return TESS_SCOPE_IMAGE;
    case TESS_NODE_UNIT_NORM:
    case TESS_NODE_SNV:
    case TESS_NODE_SAVITZKY_GOLAY:
    case TESS_NODE_CONTINUUM:
    case TESS_NODE_BANDPASS:
    case TESS_NODE_BINARY:
    case TESS_NODE_METRICS:
    case TESS_NODE_RESIDUAL:
    case TESS_NODE_BCE:
    case TESS_NODE_IOU:
    case TESS_NODE_MSE:
    case TESS_NODE_ORTHOGONALITY:
    case TESS_NODE_DISTINCTNESS:
    case TESS_NODE_ENTROPY:
    case TESS_NODE_DIVERSITY:
    case TESS_NODE_KINDS:
        break;
    }
    return TESS_SCOPE_NONE;
}

bool tess_node_is_affine(const tess_node *node)
{
    const bool maps = node->kind == TESS_NODE_MINMAX || node->kind == TESS_NODE_ZSCORE ||
                      node->kind == TESS_NODE_SAVITZKY_GOLAY || node->kind == TESS_NODE_BANDPASS ||
                      node->kind == TESS_NODE_PCA || node->kind == TESS_NODE_SELECTOR ||
                      node->kind == TESS_NODE_LINEAR;
    return maps && tess_node_scope_of(node) != TESS_SCOPE_IMAGE;
}

int tess_pipeline_kind(const tess_pipeline *pipeline, tess_node_kind kind)
{
    for (int i = 0; i < pipeline->count; i++)
        if (pipeline->nodes[i].kind == kind)
            return i;
    return -1;
}

int tess_pipeline_score(const tess_pipeline *pipeline)
{
    for (int i = 0; i < pipeline->count; i++)
        if (tess_node_kinds[pipeline->nodes[i].kind].gives == TESS_PORT_SCORES &&
            (tess_node_kinds[pipeline->nodes[i].kind].reads >> TESS_PORT_SPECTRA & 1))
            return i;
    return -1;
}

int tess_pipeline_decider(const tess_pipeline *pipeline)
{
    for (int i = 0; i < pipeline->count; i++)
        if (tess_node_kinds[pipeline->nodes[i].kind].gives == TESS_PORT_DECISIONS)
            return i;
    return -1;
}

static const tess_setting *trainable_of(const tess_node *node)
{
    const tess_setting *setting = tess_node_kinds[node->kind].settings;
    while (setting->name && strcmp(setting->name, "trainable") != 0)
        setting++;
    return setting->name ? setting : NULL;
}

bool tess_node_trainable(const tess_node *node)
{
    const tess_setting *setting = trainable_of(node);
    return setting && node->values[setting - tess_node_kinds[node->kind].settings] != 0;
}

bool tess_node_set_trainable(tess_node *node, bool trainable)
{
    const tess_setting *setting = trainable_of(node);
    if (setting)
        node->values[setting - tess_node_kinds[node->kind].settings] = trainable;
    return setting != NULL;
}

int tess_pipeline_find(const tess_pipeline *pipeline, const char *name)
{
    for (int i = 0; i < pipeline->count; i++)
        if (strcmp(pipeline->nodes[i].name, name) == 0)
            return i;
    return -1;
}

/* True if `node` lies on the way from the data to `at`, or is the data. */
static bool is_before(const tess_pipeline *pipeline, int node, int at)
{
    while (at != node && at != TESS_NODE_DATA)
        at = pipeline->nodes[at].from;
    return at == node;
}

/* Pixels are trimmed by scores of phase 1, which a node that gradients change has no part in. */
static tess_status check_trim(const tess_pipeline *pipeline, int index, tess_error *error)
{
    const tess_node *node = &pipeline->nodes[index];
    if (node->kind != TESS_NODE_RX || node->values[TESS_RX_TRIM] == 0)
        return TESS_OK;
    for (int at = index; at != TESS_NODE_DATA; at = pipeline->nodes[at].from)
        if (tess_node_trainable(&pipeline->nodes[at]) || pipeline->nodes[at].kind == TESS_NODE_MLP)
            return tess_fail(error, TESS_BAD_INPUT,
                             "node '%s' (rx): trim: cannot be used where '%s' is trainable", node->name,
                             pipeline->nodes[at].name);
    return TESS_OK;
}

tess_status tess_node_check_inputs(const tess_pipeline *pipeline, int index, tess_error *error)
{
    TESS_TRY(check_trim(pipeline, index, error));
    const tess_node *node = &pipeline->nodes[index];
    const tess_node_kind from = node->from < 0 ? TESS_NODE_KINDS : pipeline->nodes[node->from].kind;
    const char *needs = NULL;
    if (node->kind == TESS_NODE_ORTHOGONALITY && from != TESS_NODE_PCA)
        needs = "pca";
    if (node->kind == TESS_NODE_DISTINCTNESS && from != TESS_NODE_PCA && from != TESS_NODE_LINEAR)
        needs = "pca or linear";
    if ((node->kind == TESS_NODE_ENTROPY || node->kind == TESS_NODE_DIVERSITY) && from != TESS_NODE_SELECTOR)
        needs = "selector";
    if (needs)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "node '%s' (%s): is a loss of the parameters of a node of the kind %s; connect it to one",
            node->name, tess_node_kinds[node->kind].name, needs);
    if (node->target != TESS_NODE_NOTHING && !is_before(pipeline, node->target, node->from))
        return tess_fail(error, TESS_BAD_INPUT,
                         "node '%s' (%s): target: '%s' does not lie between the data and what it reads",
                         node->name, tess_node_kinds[node->kind].name, pipeline->nodes[node->target].name);
    return TESS_OK;
}
