/* compile.c: channels, wavelengths and taps of a pipeline. */
#include "model/spectral/compile.h"

#include <string.h>

#include "base/mem.h"

int tess_spectral_gives(const tess_spectral_plan *plan, int node)
{
    return node == TESS_NODE_DATA ? plan->bands : plan->channels[node];
}

int tess_spectral_reads(const tess_spectral_plan *plan, int node)
{
    return tess_spectral_gives(plan, plan->pipeline.nodes[node].from);
}

static int *source_of(tess_spectral_plan *plan, int node)
{
    return node == TESS_NODE_DATA ? plan->all_bands : plan->source[node];
}

static tess_status place_bandpass(tess_spectral_plan *plan, int i, tess_error *error)
{
    const tess_node *node = &plan->pipeline.nodes[i];
    const int in = tess_spectral_reads(plan, i), *from = source_of(plan, node->from);
    const double low = node->values[TESS_BANDPASS_FROM], high = node->values[TESS_BANDPASS_TO];
    if (!plan->wavelengths || !from)
        return tess_fail(error, TESS_BAD_INPUT, "node '%s' (bandpass) needs wavelengths, which %s",
                         node->name,
                         from ? "the cube does not have" : "the components that it reads do not have");
    int *kept = plan->owned[i] = plan->source[i] = tess_small_alloc((size_t)in, sizeof *kept);
    if (!kept)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the bands");
    for (int c = 0; c < in; c++)
        if (plan->wavelengths[from[c]] >= low && plan->wavelengths[from[c]] <= high)
            kept[plan->channels[i]++] = from[c];
    if (plan->channels[i])
        return TESS_OK;
    double least = plan->wavelengths[from[0]], largest = least;
    for (int c = 1; c < in; c++) {
        least = plan->wavelengths[from[c]] < least ? plan->wavelengths[from[c]] : least;
        largest = plan->wavelengths[from[c]] > largest ? plan->wavelengths[from[c]] : largest;
    }
    return tess_fail(error, TESS_BAD_INPUT,
                     "node '%s' (bandpass): no band is between %g and %g nm; the bands are from %g to %g nm",
                     node->name, low, high, least, largest);
}

static tess_status place_pca(tess_spectral_plan *plan, int i, tess_error *error)
{
    const tess_node *node = &plan->pipeline.nodes[i];
    const int in = tess_spectral_reads(plan, i), components = (int)node->values[TESS_PCA_COMPONENTS];
    if (components > in)
        return tess_fail(error, TESS_BAD_INPUT,
                         "node '%s' (pca): components: %d is more than the %d channels it reads", node->name,
                         components, in);
    plan->channels[i] = components ? components : in;
    return TESS_OK;
}

/* The second input must fit what it is compared with. */
static tess_status check_target(const tess_spectral_plan *plan, int i, tess_error *error)
{
    const tess_node *node = &plan->pipeline.nodes[i];
    if (node->target == TESS_NODE_NOTHING ||
        tess_spectral_gives(plan, node->target) == tess_spectral_reads(plan, i))
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT, "node '%s' (%s): target: has %d channels, and it reads %d",
                     node->name, tess_node_kinds[node->kind].name, tess_spectral_gives(plan, node->target),
                     tess_spectral_reads(plan, i));
}

static tess_status place(tess_spectral_plan *plan, int i, tess_error *error)
{
    const tess_node *node = &plan->pipeline.nodes[i];
    if (tess_node_kinds[node->kind].gives != TESS_PORT_SPECTRA) {
        plan->channels[i] = 1;
        return check_target(plan, i, error);
    }
    if (node->kind == TESS_NODE_BANDPASS)
        return place_bandpass(plan, i, error);
    if (node->kind == TESS_NODE_PCA)
        return place_pca(plan, i, error);
    if (node->kind == TESS_NODE_LINEAR || node->kind == TESS_NODE_MLP) {
        plan->channels[i] =
            (int)node->values[node->kind == TESS_NODE_MLP ? TESS_MLP_CHANNELS : TESS_LINEAR_CHANNELS];
        return TESS_OK;
    }
    plan->channels[i] = tess_spectral_reads(plan, i);
    if (node->kind == TESS_NODE_SELECTOR && node->values[TESS_SELECTOR_SELECT] > plan->channels[i])
        return tess_fail(error, TESS_BAD_INPUT,
                         "node '%s' (selector): select: %g is more than the %d channels it reads", node->name,
                         node->values[TESS_SELECTOR_SELECT], plan->channels[i]);
    plan->source[i] = source_of(plan, node->from);
    if (node->kind == TESS_NODE_SAVITZKY_GOLAY && node->values[TESS_SAVGOL_WINDOW] > plan->channels[i])
        return tess_fail(error, TESS_BAD_INPUT,
                         "node '%s' (savitzky_golay): window: %g is more than the %d bands", node->name,
                         node->values[TESS_SAVGOL_WINDOW], plan->channels[i]);
    return TESS_OK;
}

static unsigned needs_of(const tess_node *node)
{
    const bool image = tess_node_scope_of(node) == TESS_SCOPE_IMAGE;
    switch (node->kind) {
    case TESS_NODE_MINMAX:
        return image ? TESS_NEED_CHANNEL_RANGES : TESS_NEED_RANGE;
    case TESS_NODE_ZSCORE:
    case TESS_NODE_PCA:
    case TESS_NODE_SELECTOR:
    case TESS_NODE_LINEAR:
        return TESS_NEED_COVARIANCE;
    case TESS_NODE_SIGMOID:
        return TESS_NEED_COVARIANCE | TESS_NEED_MEDIANS;
    case TESS_NODE_RX:
        return image || tess_node_scope_of(node) == TESS_SCOPE_SET ? TESS_NEED_COVARIANCE : 0;
    case TESS_NODE_LAD:
    case TESS_NODE_SVDD:
        return TESS_NEED_MEAN;
    case TESS_NODE_SCORE_TO_LOGIT:
        return TESS_NEED_SCORES;
    case TESS_NODE_FALSE_ALARM:
        return TESS_NEED_SCORE_ORDER;
    case TESS_NODE_UNIT_NORM:
    case TESS_NODE_SNV:
    case TESS_NODE_SAVITZKY_GOLAY:
    case TESS_NODE_CONTINUUM:
    case TESS_NODE_BANDPASS:
    case TESS_NODE_BINARY:
    case TESS_NODE_QUANTILE: /* deciders of an image read the scores that were written */
    case TESS_NODE_TWO_STAGE:
    case TESS_NODE_METRICS:
    case TESS_NODE_MLP: /* its first values are drawn */
    case TESS_NODE_RESIDUAL:
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
    return 0;
}

/* Where the statistics of a node are gathered: behind the last cut, or directly before the node if it needs the range of
 * values behind a node that mixes channels. */
static int tap_place(const tess_spectral_plan *plan, int i, unsigned needs)
{
    const tess_node *nodes = plan->pipeline.nodes;
    const bool scores = needs & (TESS_NEED_SCORES | TESS_NEED_SCORE_ORDER);
    const bool direct = needs & (TESS_NEED_CHANNEL_RANGES | TESS_NEED_MEDIANS);
    int at = nodes[i].from;
    if (scores)
        return tess_pipeline_score(&plan->pipeline);
    while (!direct && at != TESS_NODE_DATA && tess_node_is_affine(&nodes[at])) {
        if ((needs & TESS_NEED_RANGE) && nodes[at].kind != TESS_NODE_MINMAX)
            return nodes[i].from;
        at = nodes[at].from;
    }
    return at;
}

/* The latest pass (reading) that fits a node at or before `at`, of one scope. */
static int fitted_before(const tess_spectral_plan *plan, int at, tess_node_scope scope)
{
    int last = 0;
    for (; at != TESS_NODE_DATA; at = plan->pipeline.nodes[at].from)
        if (tess_node_scope_of(&plan->pipeline.nodes[at]) == scope && plan->known[at] > last)
            last = plan->known[at];
    return last;
}

int tess_spectral_readings_at(const tess_spectral_plan *plan, int node)
{
    return fitted_before(plan, node, TESS_SCOPE_IMAGE);
}

static void add_tap(tess_spectral_plan *plan, int i)
{
    const unsigned needs = needs_of(&plan->pipeline.nodes[i]);
    plan->tap_of[i] = -1;
    if (!needs)
        return;
    tess_tap tap = {.at = tap_place(plan, i, needs), .needs = needs};
    const bool image = tess_node_scope_of(&plan->pipeline.nodes[i]) == TESS_SCOPE_IMAGE;
    tap.scope = image ? TESS_SCOPE_IMAGE : TESS_SCOPE_SET;
    tap.first = fitted_before(plan, tap.at, tap.scope) + 1;
    tap.last = tap.first;
    if (needs & TESS_NEED_MEDIANS)
        tap.last = tap.first + TESS_MEDIAN_READINGS - 1;
    if (needs & TESS_NEED_SCORE_ORDER)
        tap.last = tap.first + TESS_ORDER_READINGS - 1;
    plan->known[i] = tap.last;
    int *most = image ? &plan->readings : &plan->passes;
    *most = tap.last > *most ? tap.last : *most;
    for (int t = 0; t < plan->taps; t++)
        if (plan->tap[t].at == tap.at && plan->tap[t].scope == tap.scope && plan->tap[t].first == tap.first) {
            plan->tap[t].needs |= needs;
            plan->tap[t].last = tap.last > plan->tap[t].last ? tap.last : plan->tap[t].last;
            plan->tap_of[i] = t;
            return;
        }
    plan->tap_of[i] = plan->taps;
    plan->tap[plan->taps++] = tap;
}

/* RX that is fitted again without the pixels that score high. */
static void add_trim_tap(tess_spectral_plan *plan)
{
    const int score = tess_pipeline_score(&plan->pipeline), t = plan->tap_of[score];
    const tess_node *node = &plan->pipeline.nodes[score];
    plan->trim_tap = -1;
    if (node->kind != TESS_NODE_RX || node->values[TESS_RX_TRIM] == 0 || t < 0)
        return;
    const int after = plan->known[score];
    plan->trim_tap = plan->taps;
    plan->tap[plan->taps++] = (tess_tap){.at = plan->tap[t].at,
                                         .needs = TESS_NEED_COVARIANCE | TESS_NEED_TRIMMED,
                                         .scope = TESS_SCOPE_SET,
                                         .first = after + 1,
                                         .last = after + (int)node->values[TESS_RX_TRIMS]};
    plan->known[score] = plan->tap[plan->trim_tap].last;
    plan->passes = plan->known[score] > plan->passes ? plan->known[score] : plan->passes;
}

tess_status tess_spectral_compile(const tess_pipeline *pipeline, int bands, const double *wavelengths,
                                  tess_spectral_plan **out, tess_error *error)
{
    *out = NULL;
    if (bands < 1 || bands > TESS_SPECTRAL_BANDS)
        return tess_fail(error, TESS_UNSUPPORTED, "the cube has %d bands; pipelines take 1 to %d", bands,
                         TESS_SPECTRAL_BANDS);
    tess_spectral_plan *plan = tess_small_alloc(1, sizeof *plan);
    tess_status status = plan ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline");
    if (status == TESS_OK) {
        plan->pipeline = *pipeline;
        plan->bands = bands;
        for (int c = 0; c < bands; c++)
            plan->all_bands[c] = c;
        plan->wavelengths = wavelengths ? tess_small_alloc((size_t)bands, sizeof *wavelengths) : NULL;
        if (wavelengths && !plan->wavelengths)
            status = tess_fail(error, TESS_NO_MEMORY, "no memory for the wavelengths");
        else if (wavelengths)
            memcpy(plan->wavelengths, wavelengths, (size_t)bands * sizeof *wavelengths);
    }
    for (int i = 0; status == TESS_OK && i < pipeline->count; i++)
        status = place(plan, i, error);
    for (int i = 0; status == TESS_OK && i < pipeline->count; i++) { /* the score before what reads scores */
        add_tap(plan, i);
        if (i == tess_pipeline_score(pipeline))
            add_trim_tap(plan);
    }
    if (status == TESS_OK)
        *out = plan;
    else
        tess_spectral_plan_free(plan);
    return status;
}

void tess_spectral_plan_free(tess_spectral_plan *plan)
{
    if (!plan)
        return;
    for (int i = 0; i < TESS_PIPELINE_NODES; i++)
        tess_small_free(plan->owned[i]);
    tess_small_free(plan->wavelengths);
    tess_small_free(plan);
}
