/* maps.c: fitted nodes as matrices, and chains of them as one. Everything is fp64: cast once, at the end. */
#include <math.h>
#include <string.h>

#include "model/spectral/state.h"

static void clear(double *a, double *b, int out, int in)
{
    memset(a, 0, (size_t)out * (size_t)in * sizeof *a);
    memset(b, 0, (size_t)out * sizeof *b);
}

static void diagonal(double *a, double *b, int channels, int i, double factor, double offset)
{
    a[(size_t)i * (size_t)channels + (size_t)i] = factor;
    b[i] = offset;
}

double tess_pca_scale(const tess_node *node, const double *variances, int k, int channels)
{
    const double eps = node->values[TESS_PCA_EPS];
    if (node->values[TESS_PCA_WHITEN] == 0)
        return 1;
    return variances[k] + eps > channels * 0x1p-52 * variances[0] ? 1 / sqrt(variances[k] + eps) : 0;
}

static void pca_affine(const tess_spectral_state *state, int node, double *a, double *b)
{
    const tess_node *n = &state->plan->pipeline.nodes[node];
    const int in = tess_spectral_reads(state->plan, node), out = state->plan->channels[node];
    const double *mean = tess_spectral_part(state, node, "mean"),
                 *w = tess_spectral_part(state, node, "components"),
                 *variances = tess_spectral_part(state, node, "variances");
    for (int k = 0; k < out; k++) {
        const double scale = tess_pca_scale(n, variances, k, in);
        double offset = 0;
        for (int c = 0; c < in; c++) {
            const double factor = scale * w[(size_t)k * (size_t)in + (size_t)c];
            a[(size_t)k * (size_t)in + (size_t)c] = factor;
            offset -= factor * mean[c];
        }
        b[k] = offset;
    }
}

static void bandpass_affine(const tess_spectral_plan *plan, int node, double *a)
{
    const int in = tess_spectral_reads(plan, node), from = plan->pipeline.nodes[node].from;
    const int *before = from == TESS_NODE_DATA ? plan->all_bands : plan->source[from];
    for (int k = 0, c = 0; k < plan->channels[node]; k++, c++) {
        while (before[c] != plan->source[node][k])
            c++;
        a[(size_t)k * (size_t)in + (size_t)c] = 1;
    }
}

void tess_multiply(const double *a, const double *b, int m, int k, int n, double *c)
{
    memset(c, 0, (size_t)m * (size_t)n * sizeof *c);
    for (int i = 0; i < m; i++)
        for (int j = 0; j < k; j++) {
            const double factor = a[(size_t)i * (size_t)k + (size_t)j];
            if (factor == 0)
                continue;
            const double *row = b + (size_t)j * (size_t)n;
            double *to = c + (size_t)i * (size_t)n;
            for (int x = 0; x < n; x++)
                to[x] += factor * row[x];
        }
}

static void linear_affine(const tess_spectral_state *state, int node, double *a, double *b)
{
    const tess_node *n = &state->plan->pipeline.nodes[node];
    const int in = tess_spectral_reads(state->plan, node), out = state->plan->channels[node];
    const double *mean = tess_spectral_part(state, node, "mean"),
                 *deviation = tess_spectral_part(state, node, "deviation"),
                 *projection = tess_spectral_part(state, node, "projection"),
                 *weight = tess_spectral_part(state, node, "weight"),
                 *bias = tess_spectral_part(state, node, "bias");
    tess_multiply(weight, projection, out, out, in, a);
    for (int k = 0; k < out; k++) {
        b[k] = bias[k];
        for (int c = 0; c < in; c++) {
            double *factor = &a[(size_t)k * (size_t)in + (size_t)c];
            *factor /= deviation[c] + n->values[TESS_LINEAR_EPS];
            b[k] -= *factor * mean[c];
        }
    }
}

static void selector_affine(const tess_spectral_state *state, int node, double *a, double *b)
{
    const int channels = state->plan->channels[node];
    double factors[TESS_SPECTRAL_BANDS];
    tess_selector_factors(state, node, factors);
    for (int i = 0; i < channels; i++)
        diagonal(a, b, channels, i, factors[i], 0);
}

void tess_node_affine(const tess_spectral_state *state, int node, double *a, double *b)
{
    const tess_spectral_plan *plan = state->plan;
    const tess_node *n = &plan->pipeline.nodes[node];
    const int in = tess_spectral_reads(plan, node), out = plan->channels[node];
    const double *p = state->of[node];
    clear(a, b, out, in);
    if (n->kind == TESS_NODE_MINMAX) {
        const double scale = 1 / fmax(p[1] - p[0], n->values[TESS_MINMAX_EPS]);
        for (int i = 0; i < in; i++)
            diagonal(a, b, in, i, scale, -p[0] * scale);
    } else if (n->kind == TESS_NODE_ZSCORE) {
        for (int i = 0; i < in; i++) {
            const double scale = 1 / (p[in + i] + n->values[TESS_ZSCORE_EPS]);
            diagonal(a, b, in, i, scale, -p[i] * scale);
        }
    } else if (n->kind == TESS_NODE_SAVITZKY_GOLAY) {
        tess_savitzky_golay((int)n->values[TESS_SAVGOL_WINDOW], (int)n->values[TESS_SAVGOL_ORDER],
                            (int)n->values[TESS_SAVGOL_DERIVATIVE],
                            (tess_filter_ends)n->values[TESS_SAVGOL_ENDS], in, a);
        const double scale = pow(n->values[TESS_SAVGOL_SPACING], -n->values[TESS_SAVGOL_DERIVATIVE]);
        for (size_t i = 0; i < (size_t)in * (size_t)in && scale != 1; i++)
            a[i] *= scale;
    } else if (n->kind == TESS_NODE_BANDPASS) {
        bandpass_affine(plan, node, a);
    } else if (n->kind == TESS_NODE_SELECTOR) {
        selector_affine(state, node, a, b);
    } else if (n->kind == TESS_NODE_LINEAR) {
        linear_affine(state, node, a, b);
    } else {
        pca_affine(state, node, a, b);
    }
}

size_t tess_spectral_fold_workspace(const tess_spectral_plan *plan)
{
    const size_t c = (size_t)tess_spectral_widest(plan);
    return 2 * c * c + 2 * c;
}

void tess_spectral_fold(const tess_spectral_state *state, int at, int to, double *a, double *b, double *work)
{
    const tess_spectral_plan *plan = state->plan;
    const size_t widest = (size_t)tess_spectral_widest(plan);
    const int in = tess_spectral_gives(plan, at);
    double *map = work, *product = map + widest * widest, *offset = product + widest * widest,
           *sum = offset + widest;
    int chain[TESS_PIPELINE_NODES], length = 0;
    for (int node = to; node != at; node = plan->pipeline.nodes[node].from)
        chain[length++] = node;
    if (length > 0) {
        tess_node_affine(state, chain[--length], a, b);
    } else {
        clear(a, b, in, in);
        for (int i = 0; i < in; i++)
            diagonal(a, b, in, i, 1, 0);
    }
    while (length-- > 0) {
        const int node = chain[length], k = tess_spectral_reads(plan, node), m = plan->channels[node];
        tess_node_affine(state, node, map, offset);
        tess_multiply(map, a, m, k, in, product);
        tess_multiply(map, b, m, k, 1, sum);
        memcpy(a, product, (size_t)m * (size_t)in * sizeof *a);
        for (int i = 0; i < m; i++)
            b[i] = sum[i] + offset[i];
    }
}
