/* quadratic.c: nodes whose score is a quadratic form, as one factor of the pixels behind the last cut. */
#include <math.h>
#include <string.h>

#include "model/spectral/state.h"
#include "tensor/symmetric.h"

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

tess_status tess_spectral_inverse(const tess_spectral_state *state, int node, double *covariance,
                                  double *inverse, double *factor, double *work, tess_error *error)
{
    const tess_node *n = &state->plan->pipeline.nodes[node];
    const int channels = tess_spectral_reads(state->plan, node);
    const size_t c = (size_t)channels;
    int rank = 0;
    for (size_t i = 0; i < c; i++)
        covariance[i * c + i] += n->values[TESS_RX_EPS];
    TESS_TRY(tess_symmetric_whiten(covariance, channels, n->values[TESS_RX_CUTOFF] * channels, work, factor,
                                   &rank, work + c, error));
    memset(inverse, 0, c * c * sizeof *inverse);
    for (size_t k = 0; k < (size_t)rank; k++)
        for (size_t i = 0; i < c; i++)
            for (size_t j = 0; j < c; j++)
                inverse[i * c + j] += factor[k * c + i] * factor[k * c + j];
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
    tess_multiply(rows, map, *rank, channels, in, square);
    for (size_t i = 0; i < (size_t)*rank * (size_t)in; i++)
        factor[i] = (float)square[i];
    const double *middle = tess_spectral_part(state, node, "centre");
    for (int i = 0; i < in; i++)
        centre[i] = (float)middle[i];
    return TESS_OK;
}
