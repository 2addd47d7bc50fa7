/* start.c: first values of parameters that gradients change, and what a selector makes of its own. The start of the MLP is
 * that of cuvis.ai: PyTorch's default for the first layer, Xavier's for the second. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/rng.h"
#include "model/spectral/state.h"

enum { PIECE = 1024 };

/* Uniform in +-bound, or normal with that deviation. */
static void draw(uint64_t seed, uint32_t item, bool normal, double bound, int64_t count, double *to)
{
    float piece[PIECE];
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t some = tess_min_i64(PIECE, count - first);
        const tess_rng_key key = {seed, item, 0};
        if (normal)
            tess_rng_normal(key, first, some, piece);
        else
            tess_rng_uniform(key, first, some, piece);
        for (int64_t i = 0; i < some; i++)
            to[first + i] = bound * (normal ? (double)piece[i] : 2 * (double)piece[i] - 1);
    }
}

static void start_mlp(tess_spectral_state *state, int node)
{
    const tess_node *n = &state->plan->pipeline.nodes[node];
    const int64_t in = tess_spectral_reads(state->plan, node), hidden = (int64_t)n->values[TESS_MLP_HIDDEN],
                  out = state->plan->channels[node];
    const uint64_t seed = (uint64_t)n->values[TESS_MLP_SEED];
    const double bound = 1 / sqrt((double)in);
    draw(seed, 0, false, bound, hidden * in, tess_spectral_part(state, node, "first"));
    draw(seed, 1, false, bound, hidden, tess_spectral_part(state, node, "bias"));
    draw(seed, 2, false, sqrt(6 / (double)(hidden + out)), out * hidden,
         tess_spectral_part(state, node, "second"));
}

/* The projection is fitted, except its rows beyond those that the input has. */
static void start_linear(tess_spectral_state *state, int node)
{
    const tess_node *n = &state->plan->pipeline.nodes[node];
    const int64_t in = tess_spectral_reads(state->plan, node), out = state->plan->channels[node];
    const uint64_t seed = (uint64_t)n->values[TESS_LINEAR_SEED];
    draw(seed, 0, true, 0.01, out * out, tess_spectral_part(state, node, "weight"));
    draw(seed, 1, true, 0.01, out * in, tess_spectral_part(state, node, "projection"));
    memset(tess_spectral_part(state, node, "bias"), 0, (size_t)out * sizeof(double));
}

void tess_spectral_start(tess_spectral_state *state)
{
    for (int i = 0; i < state->plan->pipeline.count; i++) {
        const tess_node_kind kind = state->plan->pipeline.nodes[i].kind;
        if (kind == TESS_NODE_MLP)
            start_mlp(state, i);
        else if (kind == TESS_NODE_LINEAR)
            start_linear(state, i);
        else if (kind == TESS_NODE_SOFT_BOUNDARY)
            state->of[i][0] = 0;
    }
}

/* 1 for the channels with the largest logits; of equal ones the first. */
static void hard_factors(const double *logits, int channels, int select, double *factors)
{
    memset(factors, 0, (size_t)channels * sizeof *factors);
    for (int k = 0; k < select; k++) {
        int best = -1;
        for (int i = 0; i < channels; i++)
            if (factors[i] == 0 && (best < 0 || logits[i] > logits[best]))
                best = i;
        factors[best] = 1;
    }
}

void tess_selector_factors(const tess_spectral_state *state, int node, double *factors)
{
    const tess_node *n = &state->plan->pipeline.nodes[node];
    const int channels = state->plan->channels[node];
    const double *logits = tess_spectral_part(state, node, "logits"),
                 temperature = tess_spectral_part(state, node, "temperature")[0];
    double most = -INFINITY, sum = 0;
    if (n->values[TESS_SELECTOR_HARD] != 0) {
        hard_factors(logits, channels, (int)n->values[TESS_SELECTOR_SELECT], factors);
        return;
    }
    for (int i = 0; i < channels; i++)
        most = fmax(most, logits[i]);
    for (int i = 0; i < channels; i++)
        sum += factors[i] = exp((logits[i] - most) / temperature);
    for (int i = 0; i < channels; i++)
        factors[i] *= n->values[TESS_SELECTOR_SELECT] / sum;
}
