/* statistics_nodes.c: the parameters of each kind of node from the statistics at its tap. Everything between the tap and the
 * node is affine, so its mean and covariance follow exactly. */
#include <math.h>
#include <string.h>

#include "tensor/moments.h"
#include "tensor/symmetric.h"
#include "train/statistics/statistics_impl.h"

static tess_status too_few(const tess_statistics *s, int node, double count, double least, tess_error *error)
{
    const tess_node *n = &s->plan->pipeline.nodes[node];
    return tess_fail(error, TESS_BAD_INPUT,
                     "node '%s' (%s) needs at least %.0f pixel%s with values, and there are %.0f; NaN, "
                     "nodata and what fp32 cannot hold are none",
                     n->name, tess_node_kinds[n->kind].name, least, least > 1 ? "s" : "", count);
}

static int tap_of(const tess_statistics *s, int node)
{
    return s->trimmed && node == tess_pipeline_score(&s->plan->pipeline) ? s->plan->trim_tap
                                                                         : s->plan->tap_of[node];
}

/* The moments of what the node reads. Returns those of the tap themselves if nothing lies between. */
static const double *moments_at(tess_statistics *s, int node)
{
    const int t = tap_of(s, node), from = s->plan->pipeline.nodes[node].from;
    const tess_tap *tap = &s->plan->tap[t];
    const int in = tess_spectral_gives(s->plan, tap->at), out = tess_spectral_reads(s->plan, node);
    const double *moments = s->at.moments[t];
    if (from == tap->at)
        return moments;
    tess_spectral_fold(s->state, tap->at, from, s->at.a, s->at.b, s->at.work);
    if (tap->needs & TESS_NEED_COVARIANCE) {
        tess_moments_affine(moments, in, s->at.a, s->at.b, out, s->at.mapped);
        return s->at.mapped;
    }
    /* Only the mean, and the range through one positive factor. */
    double *to = s->at.mapped;
    to[TESS_MOMENTS_COUNT] = moments[TESS_MOMENTS_COUNT];
    to[TESS_MOMENTS_LEAST] = s->at.a[0] * moments[TESS_MOMENTS_LEAST] + s->at.b[0];
    to[TESS_MOMENTS_LARGEST] = s->at.a[0] * moments[TESS_MOMENTS_LARGEST] + s->at.b[0];
    for (int o = 0; o < out; o++) {
        double sum = s->at.b[o];
        for (int i = 0; i < in; i++)
            sum += s->at.a[(size_t)o * (size_t)in + (size_t)i] * moments[TESS_MOMENTS_MEAN + i];
        to[TESS_MOMENTS_MEAN + o] = sum;
    }
    return to;
}

static void deviations(const double *moments, int channels, double divisor, double *to)
{
    const double *second = moments + tess_moments_second(channels);
    for (size_t c = 0; c < (size_t)channels; c++)
        to[c] = sqrt(fmax(second[c * (size_t)channels + c], 0) / divisor);
}

static tess_status fit_pca(tess_statistics *s, int node, const double *moments, tess_error *error)
{
    const int channels = tess_spectral_reads(s->plan, node), kept = s->plan->channels[node];
    const size_t c = (size_t)channels;
    const double *second = moments + tess_moments_second(channels);
    double *square = s->at.square;
    for (size_t i = 0; i < c * c; i++)
        square[i] = second[i] / (moments[TESS_MOMENTS_COUNT] - 1);
    memcpy(tess_spectral_part(s->state, node, "mean"), moments + TESS_MOMENTS_MEAN, c * sizeof(double));
    TESS_TRY(tess_symmetric_eigen(square, channels, s->at.values, square, s->at.work, error));
    double *components = tess_spectral_part(s->state, node, "components"),
           *variances = tess_spectral_part(s->state, node, "variances");
    for (size_t k = 0; k < (size_t)kept; k++) { /* the largest first */
        variances[k] = fmax(s->at.values[c - 1 - k], 0);
        memcpy(components + k * c, square + (c - 1 - k) * c, c * sizeof(double));
    }
    return TESS_OK;
}

static void fit_centre(tess_statistics *s, int node)
{
    const int t = tap_of(s, node), channels = tess_spectral_gives(s->plan, s->plan->tap[t].at);
    memcpy(tess_spectral_part(s->state, node, "centre"), s->at.moments[t] + TESS_MOMENTS_MEAN,
           (size_t)channels * sizeof(double));
}

static tess_status fit_rx(tess_statistics *s, int node, const double *moments, tess_error *error)
{
    const tess_node *n = &s->plan->pipeline.nodes[node];
    const int channels = tess_spectral_reads(s->plan, node);
    const size_t c = (size_t)channels;
    const double count = moments[TESS_MOMENTS_COUNT], *second = moments + tess_moments_second(channels);
    if (count <= channels && n->values[TESS_RX_EPS] == 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "node '%s' (rx): %.0f pixels with values are too few for the covariance of %d "
                         "channels; give more, a "
                         "pca node before it, or an eps above 0",
                         n->name, count, channels);
    double *inverse = tess_spectral_part(s->state, node, "inverse"),
           *covariance = inverse ? s->at.square : tess_spectral_part(s->state, node, "covariance");
    memcpy(tess_spectral_part(s->state, node, "mean"), moments + TESS_MOMENTS_MEAN, c * sizeof(double));
    for (size_t i = 0; i < c * c; i++)
        covariance[i] = second[i] / (count - 1);
    if (inverse) /* what gradients change */
        return tess_spectral_inverse(s->state, node, covariance, inverse, s->at.a, s->at.work, error);
    fit_centre(s, node);
    return TESS_OK;
}

static void fit_lad(tess_statistics *s, int node, const double *moments)
{
    const int channels = tess_spectral_reads(s->plan, node);
    double *mean = tess_spectral_part(s->state, node, "mean");
    memcpy(mean, moments + TESS_MOMENTS_MEAN, (size_t)channels * sizeof(double));
    tess_lad_laplacian(mean, channels, s->plan->pipeline.nodes[node].values[TESS_LAD_NORMALISED] != 0,
                       tess_spectral_part(s->state, node, "laplacian"));
    fit_centre(s, node);
}

static void fit_selector(tess_statistics *s, int node, const double *moments)
{
    const tess_node *n = &s->plan->pipeline.nodes[node];
    const size_t c = (size_t)tess_spectral_reads(s->plan, node);
    const double *second = moments + tess_moments_second((int)c), count = moments[TESS_MOMENTS_COUNT];
    double *logits = tess_spectral_part(s->state, node, "logits");
    for (size_t i = 0; i < c; i++)
        logits[i] = n->values[TESS_SELECTOR_START] == TESS_START_UNIFORM
                        ? 0
                        : log(fmax(second[i * c + i], 0) / (count - 1) + n->values[TESS_SELECTOR_EPS]);
    tess_spectral_part(s->state, node, "temperature")[0] = n->values[TESS_SELECTOR_TEMPERATURE];
}

/* The first rows of the matrix whose columns are the directions of the uncentred second moments, the largest first. */
static tess_status fit_linear(tess_statistics *s, int node, const double *moments, tess_error *error)
{
    const int channels = tess_spectral_reads(s->plan, node), rows = s->plan->channels[node];
    const size_t c = (size_t)channels;
    const double *second = moments + tess_moments_second(channels), *mean = moments + TESS_MOMENTS_MEAN;
    double *square = s->at.square, *projection = tess_spectral_part(s->state, node, "projection");
    memcpy(tess_spectral_part(s->state, node, "mean"), mean, c * sizeof(double));
    deviations(moments, channels, moments[TESS_MOMENTS_COUNT] - 1,
               tess_spectral_part(s->state, node, "deviation"));
    for (size_t i = 0; i < c * c; i++)
        square[i] = second[i] + moments[TESS_MOMENTS_COUNT] * mean[i / c] * mean[i % c];
    TESS_TRY(tess_symmetric_eigen(square, channels, s->at.values, square, s->at.work, error));
    for (size_t k = 0; k < c && k < (size_t)rows; k++)
        for (size_t j = 0; j < c; j++)
            projection[k * c + j] = square[(c - 1 - j) * c + k];
    return TESS_OK;
}

static void fit_zscore(tess_statistics *s, int node, const double *moments, bool image)
{
    const int channels = tess_spectral_reads(s->plan, node);
    double *p = s->state->of[node];
    memcpy(p, moments + TESS_MOMENTS_MEAN, (size_t)channels * sizeof(double));
    deviations(moments, channels, moments[TESS_MOMENTS_COUNT] - (image ? 0 : 1), p + channels);
}

tess_status tess_statistics_fit_node(tess_statistics *s, int node, tess_error *error)
{
    const tess_node *n = &s->plan->pipeline.nodes[node];
    const int t = tap_of(s, node), channels = tess_spectral_reads(s->plan, node);
    const bool image = tess_node_scope_of(n) == TESS_SCOPE_IMAGE,
               scores = tess_tap_of_scores(&s->plan->tap[t]);
    const double *moments = scores ? s->at.moments[t] : moments_at(s, node);
    const double count = moments[TESS_MOMENTS_COUNT];
    double *p = s->state->of[node];
    const bool ranges = n->kind == TESS_NODE_MINMAX && image;
    const double least = n->kind == TESS_NODE_MINMAX || n->kind == TESS_NODE_LAD ||
                                 n->kind == TESS_NODE_SVDD || n->kind == TESS_NODE_FALSE_ALARM
                             ? 1
                             : 2;
    if (ranges ? !isfinite(s->at.ranges[t][0]) : count < least)
        return too_few(s, node, ranges ? 0 : count, least, error);
    if (ranges) {
        memcpy(p, s->at.ranges[t], 2 * (size_t)channels * sizeof(double));
    } else if (n->kind == TESS_NODE_MINMAX) {
        p[0] = moments[TESS_MOMENTS_LEAST], p[1] = moments[TESS_MOMENTS_LARGEST];
    } else if (n->kind == TESS_NODE_ZSCORE) {
        fit_zscore(s, node, moments, image);
    } else if (n->kind == TESS_NODE_SIGMOID) {
        for (int c = 0; c < channels; c++)
            p[c] = tess_order_value(&s->order[t], c);
        deviations(moments, channels, count, p + channels);
    } else if (n->kind == TESS_NODE_PCA) {
        return fit_pca(s, node, moments, error);
    } else if (n->kind == TESS_NODE_SELECTOR) {
        fit_selector(s, node, moments);
    } else if (n->kind == TESS_NODE_LINEAR) {
        return fit_linear(s, node, moments, error);
    } else if (n->kind == TESS_NODE_SVDD) {
        memcpy(p, moments + TESS_MOMENTS_MEAN, (size_t)channels * sizeof(double));
    } else if (n->kind == TESS_NODE_RX) {
        return fit_rx(s, node, moments, error);
    } else if (n->kind == TESS_NODE_LAD) {
        fit_lad(s, node, moments);
    } else if (n->kind == TESS_NODE_SCORE_TO_LOGIT) {
        p[0] = n->values[TESS_LOGIT_SCALE];
        p[1] = moments[TESS_MOMENTS_MEAN] +
               n->values[TESS_LOGIT_DEVIATIONS] * sqrt(moments[tess_moments_second(1)] / (count - 1));
    } else {
        p[0] = tess_order_value(&s->order[t], 0);
    }
    return TESS_OK;
}
