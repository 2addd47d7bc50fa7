/* maps.c: fitted nodes as matrices, and chains of them as one. Everything is fp64: cast once, at the end. */
#include <math.h>
#include <string.h>

#include "model/spectral/state.h"
#include "tensor/symmetric.h"

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

static void pca_affine(const tess_spectral_state *state, int node, double *a, double *b)
{
    const tess_node *n = &state->plan->pipeline.nodes[node];
    const int in = tess_spectral_reads(state->plan, node), out = state->plan->channels[node];
    const double *mean = tess_spectral_part(state, node, "mean"),
                 *w = tess_spectral_part(state, node, "components"),
                 *variances = tess_spectral_part(state, node, "variances");
    for (int k = 0; k < out; k++) {
        const double scale =
            n->values[TESS_PCA_WHITEN] != 0 ? 1 / sqrt(variances[k] + n->values[TESS_PCA_EPS]) : 1;
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
    } else {
        pca_affine(state, node, a, b);
    }
}

/* c (m x n) = a (m x k) b (k x n). The loops skip zeros: most factors are diagonal or banded. */
static void multiply(const double *a, const double *b, int m, int k, int n, double *c)
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
    clear(a, b, in, in);
    for (int i = 0; i < in; i++)
        diagonal(a, b, in, i, 1, 0);
    while (length--) {
        const int node = chain[length], k = tess_spectral_reads(plan, node), m = plan->channels[node];
        tess_node_affine(state, node, map, offset);
        multiply(map, a, m, k, in, product);
        multiply(map, b, m, k, 1, sum);
        memcpy(a, product, (size_t)m * (size_t)in * sizeof *a);
        for (int i = 0; i < m; i++)
            b[i] = sum[i] + offset[i];
    }
}

/* Sun, Yao, Ortega, Gamez, Sanchez-Reillo (2019), as cuvis.ai has it. */
void tess_lad_laplacian(const double *mean, int channels, bool normalised, double *l)
{
    const size_t c = (size_t)channels;
    double all = 0;
    for (size_t i = 0; i < c; i++)
        all += mean[i] / channels;
    for (size_t i = 0; i < c; i++) {
        double degree = 0;
        for (size_t j = 0; j < c; j++) {
            const double far = fabs(mean[i] - mean[j]) / (all + 1e-12);
            l[i * c + j] = i == j ? 0 : -1 / (1 + far * far);
            degree -= l[i * c + j];
        }
        l[i * c + i] = degree;
    }
    if (!normalised)
        return;
    for (size_t i = 0; i < c; i++) /* the diagonal holds the degrees until the end */
        for (size_t j = 0; j < c; j++)
            if (i != j)
                l[i * c + j] /= (sqrt(l[i * c + i]) + 1e-12) * (sqrt(l[j * c + j]) + 1e-12);
    for (size_t i = 0; i < c; i++) {
        const double root = sqrt(l[i * c + i]) + 1e-12;
        l[i * c + i] /= root * root;
    }
}

size_t tess_spectral_quadratic_workspace(const tess_spectral_plan *plan)
{
    const size_t c = (size_t)tess_spectral_widest(plan);
    return tess_spectral_fold_workspace(plan) + 3 * c * c + 3 * c + tess_symmetric_workspace((int)c);
}

/* Rows of `factor` (c x c) for the score node, of its own input. */
static tess_status make_factor(const tess_spectral_state *state, int node, double *square, double *values,
                               double *factor, int *rank, double *work, tess_error *error)
{
    const tess_node *n = &state->plan->pipeline.nodes[node];
    const int channels = tess_spectral_reads(state->plan, node);
    const size_t c = (size_t)channels;
    const bool rx = n->kind == TESS_NODE_RX;
    memcpy(square, tess_spectral_part(state, node, rx ? "covariance" : "laplacian"), c * c * sizeof *square);
    if (rx) {
        for (size_t i = 0; i < c; i++)
            square[i * c + i] += n->values[TESS_RX_EPS];
        return tess_symmetric_whiten(square, channels, n->values[TESS_RX_CUTOFF] * channels, values, factor,
                                     rank, work, error);
    }
    TESS_TRY(tess_symmetric_eigen(square, channels, values, factor, work, error));
    for (size_t i = 0; i < c; i++)
        for (size_t j = 0; j < c; j++)
            factor[i * c + j] *= sqrt(fmax(values[i], 0));
    *rank = channels;
    return TESS_OK;
}

tess_status tess_spectral_quadratic(const tess_spectral_state *state, float *centre, float *factor, int *rank,
                                    double *work, tess_error *error)
{
    const tess_spectral_plan *plan = state->plan;
    const int node = tess_pipeline_score(&plan->pipeline), at = tess_spectral_cut_before(plan, node);
    const int channels = tess_spectral_reads(plan, node), in = tess_spectral_gives(plan, at);
    const size_t c = (size_t)tess_spectral_widest(plan);
    double *square = work, *rows = square + c * c, *map = rows + c * c, *values = map + c * c,
           *offset = values + c, *rest = offset + 2 * c;
    tess_status status = make_factor(state, node, square, values, rows, rank, rest, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, plan->pipeline.nodes[node].name);
    tess_spectral_fold(state, at, plan->pipeline.nodes[node].from, map, offset, rest);
    multiply(rows, map, *rank, channels, in, square);
    for (size_t i = 0; i < (size_t)*rank * (size_t)in; i++)
        factor[i] = (float)square[i];
    const double *middle = tess_spectral_part(state, node, "centre");
    for (int i = 0; i < in; i++)
        centre[i] = (float)middle[i];
    return TESS_OK;
}
