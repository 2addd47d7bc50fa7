/* state.c: which parameters each node has, and the memory that holds them. */
#include "model/spectral/state.h"

#include <string.h>

static tess_node_part vector(const char *name, int64_t length)
{
    return (tess_node_part){.name = name, .rank = 1, .dims = {length, 1}};
}

static tess_node_part matrix(const char *name, int64_t rows, int64_t columns)
{
    return (tess_node_part){.name = name, .rank = 2, .dims = {rows, columns}};
}

static int score_parts(const tess_spectral_plan *plan, int node, const char *square, tess_node_part *parts)
{
    const int c = tess_spectral_reads(plan, node);
    parts[0] = vector("mean", c);
    parts[1] = matrix(square, c, c);
    parts[2] = vector("centre", tess_spectral_gives(plan, tess_spectral_cut_before(plan, node)));
    return 3;
}

static int linear_parts(const tess_spectral_plan *plan, int node, tess_node_part *parts)
{
    const int in = tess_spectral_reads(plan, node), out = plan->channels[node];
    parts[0] = vector("mean", in);
    parts[1] = vector("deviation", in);
    parts[2] = matrix("projection", out, in);
    parts[3] = matrix("weight", out, out);
    parts[4] = vector("bias", out);
    return 5;
}

static int mlp_parts(const tess_spectral_plan *plan, int node, tess_node_part *parts)
{
    const int64_t hidden = (int64_t)plan->pipeline.nodes[node].values[TESS_MLP_HIDDEN];
    parts[0] = matrix("first", hidden, tess_spectral_reads(plan, node));
    parts[1] = vector("bias", hidden);
    parts[2] = matrix("second", plan->channels[node], hidden);
    return 3;
}

static int list_parts(const tess_spectral_plan *plan, int node, tess_node_part *parts)
{
    const tess_node *n = &plan->pipeline.nodes[node];
    const bool image = tess_node_scope_of(n) == TESS_SCOPE_IMAGE;
    const int c = tess_spectral_reads(plan, node);
    switch (n->kind) {
    case TESS_NODE_MINMAX:
        parts[0] = vector("least", image ? c : 1);
        parts[1] = vector("largest", image ? c : 1);
        return 2;
    case TESS_NODE_ZSCORE:
        parts[0] = vector("mean", c);
        parts[1] = vector("deviation", c);
        return 2;
    case TESS_NODE_SIGMOID:
        parts[0] = vector("median", c);
        parts[1] = vector("deviation", c);
        return 2;
    case TESS_NODE_PCA:
        parts[0] = vector("mean", c);
        parts[1] = matrix("components", plan->channels[node], c);
        parts[2] = vector("variances", plan->channels[node]);
        return 3;
    case TESS_NODE_SELECTOR:
        parts[0] = vector("logits", c);
        parts[1] = vector("temperature", 1);
        return 2;
    case TESS_NODE_LINEAR:
        return linear_parts(plan, node, parts);
    case TESS_NODE_MLP:
        return mlp_parts(plan, node, parts);
    case TESS_NODE_SVDD:
        parts[0] = vector("centre", c);
        return 1;
    case TESS_NODE_SOFT_BOUNDARY:
        parts[0] = vector("radius", 1);
        return 1;
    case TESS_NODE_RX:
        if (tess_node_trainable(n)) {
            parts[0] = vector("mean", c);
            parts[1] = matrix("inverse", c, c);
            return 2;
        }
        return tess_node_scope_of(n) == TESS_SCOPE_LOCAL ? 0 : score_parts(plan, node, "covariance", parts);
    case TESS_NODE_LAD:
        return score_parts(plan, node, "laplacian", parts);
    case TESS_NODE_SCORE_TO_LOGIT:
        parts[0] = vector("scale", 1);
        parts[1] = vector("bias", 1);
        return 2;
    case TESS_NODE_FALSE_ALARM:
        parts[0] = vector("threshold", 1);
        return 1;
    case TESS_NODE_UNIT_NORM:
    case TESS_NODE_SNV:
    case TESS_NODE_SAVITZKY_GOLAY:
    case TESS_NODE_CONTINUUM:
    case TESS_NODE_BANDPASS:
    case TESS_NODE_BINARY:
    case TESS_NODE_QUANTILE:
    case TESS_NODE_TWO_STAGE:
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
    return 0;
}

int tess_node_parts(const tess_spectral_plan *plan, int node, tess_node_part parts[TESS_NODE_PARTS],
                    size_t *values)
{
    const int count = list_parts(plan, node, parts);
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        parts[i].offset = at;
        at += (size_t)parts[i].dims[0] * (size_t)parts[i].dims[1];
    }
    if (values)
        *values = at;
    return count;
}

/* Places the parameters at `base` and returns how many values they are. */
static size_t lay_out(const tess_spectral_plan *plan, double *base, tess_spectral_state *state)
{
    size_t at = 0;
    for (int i = 0; i < plan->pipeline.count; i++) {
        tess_node_part parts[TESS_NODE_PARTS];
        size_t values;
        tess_node_parts(plan, i, parts, &values);
        if (state)
            state->of[i] = values ? base + at : NULL;
        at += values;
    }
    return at;
}

size_t tess_spectral_state_bytes(const tess_spectral_plan *plan)
{
    return lay_out(plan, NULL, NULL) * sizeof(double);
}

tess_status tess_spectral_state_create(tess_memory *memory, const tess_spectral_plan *plan,
                                       tess_spectral_state *state, tess_error *error)
{
    *state = (tess_spectral_state){.plan = plan};
    TESS_TRY(tess_block_alloc(memory, &state->block, TESS_MEM_HOST, tess_spectral_state_bytes(plan), error));
    lay_out(plan, state->block.data, state);
    tess_spectral_start(state);
    return TESS_OK;
}

void tess_spectral_state_free(tess_spectral_state *state)
{
    tess_block_free(&state->block);
    *state = (tess_spectral_state){0};
}

double *tess_spectral_part(const tess_spectral_state *state, int node, const char *name)
{
    tess_node_part parts[TESS_NODE_PARTS];
    const int count = tess_node_parts(state->plan, node, parts, NULL);
    for (int i = 0; i < count; i++)
        if (strcmp(parts[i].name, name) == 0)
            return state->of[node] + parts[i].offset;
    return NULL;
}

int tess_spectral_widest(const tess_spectral_plan *plan)
{
    int widest = plan->bands;
    for (int i = 0; i < plan->pipeline.count; i++)
        widest = plan->channels[i] > widest ? plan->channels[i] : widest;
    return widest;
}

int tess_spectral_cut_before(const tess_spectral_plan *plan, int node)
{
    int at = plan->pipeline.nodes[node].from;
    while (at != TESS_NODE_DATA && tess_node_is_affine(&plan->pipeline.nodes[at]))
        at = plan->pipeline.nodes[at].from;
    return at;
}
