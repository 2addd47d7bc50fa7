/* network_values.c: the parameters of a pipeline's network: parts of its state, or made from them. */
#include <math.h>
#include <string.h>

#include "model/spectral/network_impl.h"

/* Which part of a node's state a parameter is. */
static const struct {
    tess_node_kind kind;
    const char *what, *weight, *bias; /* NULL: it is made */
} parts[] = {
    {TESS_NODE_ZSCORE, "norm", "deviation", "mean"},
    {TESS_NODE_PCA, "mean", "mean", NULL},
    {TESS_NODE_PCA, "components", "components", NULL},
    {TESS_NODE_SELECTOR, "logits", "logits", NULL},
    {TESS_NODE_LINEAR, "norm", "deviation", "mean"},
    {TESS_NODE_LINEAR, "projection", "projection", NULL},
    {TESS_NODE_LINEAR, "weight", "weight", "bias"},
    {TESS_NODE_MLP, "first", "first", "bias"},
    {TESS_NODE_MLP, "second", "second", NULL},
    {TESS_NODE_RX, "mean", "mean", NULL},
    {TESS_NODE_RX, "inverse", "inverse", NULL},
    {TESS_NODE_LAD, "mean", "mean", NULL},
    {TESS_NODE_LAD, "laplacian", "laplacian", NULL},
    {TESS_NODE_SVDD, "centre", "centre", NULL},
    {TESS_NODE_SCORE_TO_LOGIT, "logit", "scale", "bias"},
    {TESS_NODE_SOFT_BOUNDARY, "radius", "radius", NULL},
};
enum { PARTS = sizeof parts / sizeof *parts };

/* NODE.WHAT.weight or NODE.WHAT.bias; names of nodes have no points. */
typedef struct place {
    int node;
    char what[TESS_LAYER_NAME];
    bool bias;
} place;

static place place_of(const tess_spectral_plan *plan, const tess_parameter *parameter)
{
    place p = {.node = -1};
    const char *name = parameter->name, *first = strchr(name, '.'), *last = strrchr(name, '.');
    for (int i = 0; i < plan->pipeline.count; i++) {
        const char *node = plan->pipeline.nodes[i].name;
        if (strlen(node) == (size_t)(first - name) && memcmp(node, name, strlen(node)) == 0)
            p.node = i;
    }
    memcpy(p.what, first + 1, (size_t)(last - first - 1));
    p.bias = strcmp(last, ".bias") == 0;
    return p;
}

static double *part_of(const tess_spectral_state *state, const place *p)
{
    for (int i = 0; i < PARTS; i++)
        if (parts[i].kind == state->plan->pipeline.nodes[p->node].kind && strcmp(parts[i].what, p->what) == 0)
            return tess_spectral_part(state, p->node, p->bias ? parts[i].bias : parts[i].weight);
    return NULL;
}

size_t tess_spectral_network_workspace(const tess_spectral_plan *plan)
{
    const size_t c = (size_t)tess_spectral_widest(plan);
    return 3 * c * c + c + tess_spectral_quadratic_workspace(plan);
}

/* Returns where the values are, in `work` or in the state. */
static tess_status make_values(const tess_spectral_state *state, const place *p, double *work,
                               const double **values, tess_error *error)
{
    const tess_node *node = &state->plan->pipeline.nodes[p->node];
    const size_t widest = (size_t)tess_spectral_widest(state->plan),
                 c = (size_t)tess_spectral_reads(state->plan, p->node);
    double *made = work, *vector = made + widest * widest, *rest = vector + widest;
    *values = made;
    if (strcmp(p->what, "matrix") == 0) {
        tess_node_affine(state, p->node, made, vector);
    } else if (strcmp(p->what, "scale") == 0) { /* of minmax: one factor and one centre for all channels */
        const double *least = state->of[p->node];
        for (size_t i = 0; i < c; i++)
            made[i] = p->bias ? least[0] : 1 / fmax(least[1] - least[0], node->values[TESS_MINMAX_EPS]);
    } else if (strcmp(p->what, "whiten") == 0) {
        const double *variances = tess_spectral_part(state, p->node, "variances");
        for (int i = 0; i < state->plan->channels[p->node]; i++)
            made[i] = p->bias ? 0 : tess_pca_scale(node, variances, i, (int)c);
    } else if (strcmp(p->what, "factors") == 0) {
        if (p->bias)
            memset(made, 0, c * sizeof *made);
        else
            tess_selector_factors(state, p->node, made);
    } else if (strcmp(p->what, "negative") == 0) {
        for (size_t i = 0; i < c; i++)
            made[i] = p->bias ? 0 : -1;
    } else { /* the inverse of an RX node that is not trained */
        double *factor = rest, *covariance = factor + widest * widest;
        memcpy(covariance, tess_spectral_part(state, p->node, "covariance"), c * c * sizeof *covariance);
        return tess_spectral_inverse(state, p->node, covariance, made, factor, covariance + widest * widest,
                                     error);
    }
    return TESS_OK;
}

tess_status tess_spectral_get(const tess_spectral_state *state, const tess_parameter *parameter,
                              float *values, double *work, tess_error *error)
{
    const place p = place_of(state->plan, parameter);
    const double *from = part_of(state, &p);
    if (!from)
        TESS_TRY(make_values(state, &p, work, &from, error));
    for (int64_t i = 0; i < parameter->elements; i++)
        values[i] = (float)from[i];
    return TESS_OK;
}

void tess_spectral_set(tess_spectral_state *state, const tess_parameter *parameter, const float *values)
{
    const place p = place_of(state->plan, parameter);
    double *to = part_of(state, &p);
    for (int64_t i = 0; i < parameter->elements && to; i++)
        if ((float)to[i] != values[i]) /* what did not change keeps its digits */
            to[i] = (double)values[i];
}

static tess_status fetch(void *user, int64_t tensor, int64_t first, int64_t count, void *values,
                         tess_error *error)
{
    tess_spectral_weights *w = user;
    TESS_TRY(tess_spectral_get(w->state, &w->parameters.list[tensor], w->values, w->work, error));
    memcpy(values, w->values + first, (size_t)count * sizeof(float));
    return TESS_OK;
}

tess_status tess_spectral_weights_open(const tess_spectral_state *state, const tess_net *net, double *work,
                                       tess_spectral_weights *out, tess_error *error)
{
    *out = (tess_spectral_weights){.state = state, .work = work};
    TESS_TRY(tess_parameters_list(net, &out->parameters, error));
    int64_t most = 1;
    for (int i = 0; i < out->parameters.count; i++)
        most = out->parameters.list[i].elements > most ? out->parameters.list[i].elements : most;
    out->values = tess_small_alloc((size_t)most, sizeof *out->values);
    tess_status status = out->values
                             ? tess_weights_fetched("pipeline", fetch, out, &out->weights, error)
                             : tess_fail(error, TESS_NO_MEMORY, "no memory for the parameters of a pipeline");
    for (int i = 0; i < out->parameters.count && status == TESS_OK; i++) {
        const tess_parameter *one = &out->parameters.list[i];
        status = tess_weights_add_fetched(out->weights, one->name, one->rank, one->dims, TESS_F32, error);
    }
    if (status == TESS_OK)
        status = tess_weights_drawn(out->weights, error);
    if (status != TESS_OK)
        tess_spectral_weights_close(out);
    return status;
}

void tess_spectral_weights_close(tess_spectral_weights *w)
{
    tess_weights_close(w->weights);
    tess_parameters_clear(&w->parameters);
    tess_small_free(w->values);
    *w = (tess_spectral_weights){0};
}
