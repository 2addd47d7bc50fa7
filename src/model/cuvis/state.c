/* state.c: the parameters of a fitted pipeline from the buffers of its nodes. Shapes are compared with what the pipeline needs
 * before anything is read. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/cuvis/classes.h"

enum { NAME = 1152 };

/* state_dict.NODE.BUFFER, or NODE.BUFFER; NULL: there is none. */
static const tess_weight *find_buffer(const tess_weights *weights, const char *node, const char *buffer)
{
    char name[NAME];
    snprintf(name, sizeof name, "state_dict.%.1000s.%s", node, buffer);
    const tess_weight *found = tess_weights_find(weights, name);
    return found ? found : tess_weights_find(weights, name + strlen("state_dict."));
}

static const char *buffer_of(const tess_cuvis_class *class, const char *part)
{
    for (const tess_cuvis_part *p = class->parts; p->buffer; p++)
        if (strcmp(p->part, part) == 0)
            return p->buffer;
    return NULL;
}

static tess_status no_buffer(const char *node, const char *buffer, const tess_cuvis_class *class,
                             tess_error *error)
{
    return tess_fail(error, TESS_BAD_INPUT, "has no tensor '%.60s.%s', which a %s needs", node, buffer,
                     class->name);
}

/* The first node that has a mean of each band, and reads the bands themselves. */
tess_status tess_cuvis_bands(const tess_cuvis *cuvis, const tess_weights *weights, int *bands,
                             tess_error *error)
{
    const tess_pipeline *p = &cuvis->pipeline;
    for (int i = 0; i < p->count; i++)
        if (p->nodes[i].kind == TESS_NODE_BANDPASS || p->nodes[i].kind == TESS_NODE_CONTINUUM)
            return tess_fail(error, TESS_BAD_OPTION,
                             "node '%s' needs the wavelengths of the bands; name a `cube` that has them",
                             p->nodes[i].name);
    for (int i = 0; i < p->count; i++) {
        const char *buffer = buffer_of(cuvis->of[i].class, "mean");
        if (!buffer || tess_node_scope_of(&p->nodes[i]) != TESS_SCOPE_SET)
            continue;
        const tess_weight *w = find_buffer(weights, cuvis->of[i].name, buffer);
        if (!w)
            return no_buffer(cuvis->of[i].name, buffer, cuvis->of[i].class, error);
        if (w->rank != 1 || w->dims[0] < 1 || w->dims[0] > TESS_SPECTRAL_BANDS)
            return tess_fail(error, TESS_BAD_INPUT,
                             "tensor '%.200s' is no list of 1 to %d values, one a band", w->name,
                             TESS_SPECTRAL_BANDS);
        *bands =
            (int)w->dims[0]; /* nodes are in order: none before it mixes bands without a mean of its own */
        return TESS_OK;
    }
    return tess_fail(
        error, TESS_BAD_OPTION,
        "no node says how many bands there are; name a `cube` of the kind that the pipeline is for");
}

static tess_status wrong_shape(const tess_weight *w, const tess_node_part *part, tess_error *error)
{
    char has[128] = "one value", needs[64];
    size_t used = 0;
    for (int i = 0; i < w->rank && used < sizeof has; i++)
        used +=
            (size_t)snprintf(has + used, sizeof has - used, "%s%lld", i ? " x " : "", (long long)w->dims[i]);
    if (part->rank == 2)
        snprintf(needs, sizeof needs, "%lld x %lld", (long long)part->dims[0], (long long)part->dims[1]);
    else
        snprintf(needs, sizeof needs, "%lld", (long long)part->dims[0]);
    return tess_fail(error, TESS_BAD_INPUT, "tensor '%.200s' is %s, and its node needs %s", w->name, has,
                     needs);
}

static bool has_shape(const tess_weight *w, const tess_node_part *part)
{
    if (part->rank == 1 && part->dims[0] == 1)
        return w->elements == 1;
    return w->rank == part->rank && w->dims[0] == part->dims[0] &&
           (w->rank == 1 || w->dims[1] == part->dims[1]);
}

static tess_status read_part(tess_weights *weights, const tess_weight *w, const tess_node_part *part,
                             double *to, tess_error *error)
{
    if (!has_shape(w, part))
        return wrong_shape(w, part, error);
    TESS_TRY(tess_weights_read_doubles(weights, w, 0, w->elements, to, error));
    for (int64_t i = 0; i < w->elements; i++) {
        if (!isfinite(to[i]))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "tensor '%.200s' has values that are not finite; the pipeline was saved before it was fitted",
                w->name);
        if (strcmp(part->name, "deviation") == 0 && to[i] == 0)
            return tess_fail(error, TESS_BAD_INPUT,
                             "tensor '%.200s' is zero at %lld, and values are divided by it", w->name,
                             (long long)i);
    }
    return TESS_OK;
}

static double setting_of(const tess_node *node, const char *name)
{
    const tess_setting *settings = tess_node_kinds[node->kind].settings;
    int i = 0;
    while (settings[i].name && strcmp(settings[i].name, name) != 0)
        i++;
    return settings[i].name ? node->values[i] : 0;
}

static tess_status load_part(const tess_cuvis *cuvis, tess_weights *weights, tess_memory *memory, int node,
                             const tess_cuvis_part *row, const tess_spectral_state *state, tess_error *error)
{
    tess_node_part parts[TESS_NODE_PARTS];
    const int count = tess_node_parts(state->plan, node, parts, NULL);
    const bool helped = row->how == TESS_CUVIS_HELPED;
    const char *name = helped ? cuvis->of[node].helper : cuvis->of[node].name;
    const tess_weight *w = row->how == TESS_CUVIS_SETTING ? NULL : find_buffer(weights, name, row->buffer);
    tess_cuvis_how how = helped ? TESS_CUVIS_COPY : row->how;
    if (w && w->elements == 0 && how == TESS_CUVIS_COVARIANCE) { /* no inverse was cached: upstream solves */
        w = find_buffer(weights, name, "cov");
        how = TESS_CUVIS_SYMMETRIC;
    }
    if (!w && how != TESS_CUVIS_SETTING)
        return no_buffer(name, row->buffer, cuvis->of[node].class, error);
    int k = 0;
    while (k < count && strcmp(parts[k].name, row->part) != 0)
        k++;
    if (k == count)
        return tess_fail(error, TESS_INTERNAL, "node '%.60s' has no part %s", name, row->part);
    double *to = state->of[node] + parts[k].offset;
    if (how == TESS_CUVIS_SETTING) {
        *to = setting_of(&state->plan->pipeline.nodes[node], row->part);
        return TESS_OK;
    }
    TESS_TRY(read_part(weights, w, &parts[k], to, error));
    return how == TESS_CUVIS_COPY ? TESS_OK
                                  : tess_cuvis_square(memory, how, w->name, to, (int)parts[k].dims[0], error);
}

static tess_status load_state(const tess_cuvis *cuvis, tess_weights *weights, tess_memory *memory,
                              tess_spectral_state *state, tess_error *error)
{
    const tess_pipeline *p = &state->plan->pipeline;
    for (int i = 0; i < p->count; i++) {
        if (tess_node_scope_of(&p->nodes[i]) != TESS_SCOPE_SET)
            continue;
        for (const tess_cuvis_part *row = cuvis->of[i].class->parts; row->buffer; row++)
            TESS_TRY(load_part(cuvis, weights, memory, i, row, state, error));
    }
    const int score = tess_pipeline_score(p);
    const bool centred =
        tess_node_scope_of(&p->nodes[score]) == TESS_SCOPE_SET && buffer_of(cuvis->of[score].class, "mean");
    return centred ? tess_cuvis_centre(memory, state, score, error) : TESS_OK;
}

tess_status tess_cuvis_load(const tess_cuvis *cuvis, const tess_cuvis_facts *facts, tess_weights *weights,
                            tess_memory *memory, tess_spectral_plan **plan, tess_spectral_state *state,
                            tess_error *error)
{
    *plan = NULL;
    *state = (tess_spectral_state){0};
    TESS_TRY(tess_spectral_compile(&cuvis->pipeline, facts->bands, facts->wavelengths, plan, error));
    tess_status status = tess_spectral_state_create(memory, *plan, state, error);
    if (status == TESS_OK)
        status = load_state(cuvis, weights, memory, state, error);
    if (status != TESS_OK) {
        tess_spectral_state_free(state);
        tess_spectral_plan_free(*plan);
        *plan = NULL;
    }
    return status;
}
