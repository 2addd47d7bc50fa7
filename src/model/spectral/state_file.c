#include "model/spectral/state_file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "weights/weights.h"

enum { NAME = TESS_NODE_NAME + 16, MOST = TESS_PIPELINE_NODES * TESS_NODE_PARTS };

/* The tensors of a pipeline, in the order of its nodes. Parameters of each image are not kept. */
typedef struct tensors {
    int count;
    struct {
        char name[NAME];
        int node;
        tess_node_part part;
    } list[MOST];
} tensors;

static void list_tensors(const tess_spectral_plan *plan, tensors *all)
{
    all->count = 0;
    for (int i = 0; i < plan->pipeline.count; i++) {
        tess_node_part parts[TESS_NODE_PARTS];
        const int count = tess_node_parts(plan, i, parts, NULL);
        if (tess_node_scope_of(&plan->pipeline.nodes[i]) != TESS_SCOPE_SET)
            continue;
        for (int k = 0; k < count; k++) {
            snprintf(all->list[all->count].name, NAME, "%s.%s", plan->pipeline.nodes[i].name, parts[k].name);
            all->list[all->count].node = i;
            all->list[all->count++].part = parts[k];
        }
    }
}

typedef struct source {
    const tess_spectral_state *state;
    const tensors *all;
} source;

static tess_status fetch(void *user, int64_t tensor, int64_t first, int64_t count, void *values,
                         tess_error *error)
{
    const source *s = user;
    const double *from = s->state->of[s->all->list[tensor].node] + s->all->list[tensor].part.offset;
    (void)error;
    memcpy(values, from + first, (size_t)count * sizeof(double));
    return TESS_OK;
}

static char *metadata_of(const tess_spectral_plan *plan)
{
    tess_json *root = tess_json_object();
    tess_json_set_int(&root, "version", 1);
    tess_json_set_int(&root, "bands", plan->bands);
    if (plan->wavelengths) {
        tess_json *list = tess_json_array();
        for (int i = 0; i < plan->bands; i++)
            tess_json_append_double(&list, plan->wavelengths[i]);
        tess_json_set(&root, "wavelengths", list);
    }
    tess_json_set(&root, "pipeline", tess_pipeline_json(&plan->pipeline));
    char *text = tess_json_dump(root, false);
    tess_json_free(root);
    return text;
}

static tess_status add_tensors(tess_weights *weights, const tess_spectral_state *state, const tensors *all,
                               tess_error *error)
{
    for (int i = 0; i < all->count; i++)
        TESS_TRY(tess_weights_add_fetched(weights, all->list[i].name, all->list[i].part.rank,
                                          all->list[i].part.dims, TESS_F64, error));
    char *text = metadata_of(state->plan);
    const tess_status status = text ? tess_weights_set_metadata(weights, TESS_SPECTRAL_METADATA, text, error)
                                    : tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline");
    tess_small_free(text);
    return status == TESS_OK ? tess_weights_drawn(weights, error) : status;
}

tess_status tess_spectral_save(tess_memory *memory, const char *path, const tess_spectral_state *state,
                               const tess_spectral_note *notes, int count, tess_error *error)
{
    tensors *all = tess_small_alloc(1, sizeof *all);
    source s = {state, all};
    tess_weights *weights = NULL;
    tess_status status = all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline");
    if (status == TESS_OK) {
        list_tensors(state->plan, all);
        status = tess_weights_fetched(path, fetch, &s, &weights, error);
    }
    if (status == TESS_OK)
        status = add_tensors(weights, state, all, error);
    for (int i = 0; i < count && status == TESS_OK; i++)
        status = tess_weights_set_metadata(weights, notes[i].key, notes[i].text, error);
    if (status == TESS_OK)
        status = tess_safetensors_write(memory, path, weights, error);
    tess_weights_close(weights);
    tess_small_free(all);
    return status;
}

static tess_status read_wavelengths(const tess_json *list, int64_t bands, double **out, tess_error *error)
{
    *out = NULL;
    if (!list)
        return TESS_OK;
    if (!tess_json_is_array(list) || tess_json_length(list) != bands)
        return tess_fail(error, TESS_BAD_INPUT, "has %lld bands, but another number of wavelengths",
                         (long long)bands);
    *out = tess_small_alloc((size_t)bands, sizeof **out);
    if (!*out)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the wavelengths");
    for (int64_t i = 0; i < bands; i++) {
        (*out)[i] = tess_json_as_double(tess_json_at(list, i), NAN);
        if (!isfinite((*out)[i]))
            return tess_fail(error, TESS_BAD_INPUT, "wavelength %lld is not a number", (long long)i + 1);
    }
    return TESS_OK;
}

static tess_status compile(const tess_json *root, tess_spectral_plan **plan, tess_error *error)
{
    const int64_t bands = tess_json_get_int(root, "bands", 0);
    tess_pipeline pipeline;
    double *wavelengths = NULL;
    if (tess_json_get_int(root, "version", 0) != 1 || bands < 1 || bands > TESS_SPECTRAL_BANDS)
        return tess_fail(error, TESS_BAD_INPUT,
                         "is a pipeline of another version, or of a number of bands that none has");
    TESS_TRY(tess_pipeline_parse(tess_json_get(root, "pipeline"), &pipeline, error));
    tess_status status = read_wavelengths(tess_json_get(root, "wavelengths"), bands, &wavelengths, error);
    if (status == TESS_OK)
        status = tess_spectral_compile(&pipeline, (int)bands, wavelengths, plan, error);
    tess_small_free(wavelengths);
    return status;
}

static tess_status plan_of(tess_weights *weights, tess_spectral_plan **plan, tess_error *error)
{
    const char *text = tess_weights_metadata(weights, TESS_SPECTRAL_METADATA);
    if (!text)
        return tess_fail(error, TESS_BAD_INPUT,
                         "has no pipeline in its metadata (" TESS_SPECTRAL_METADATA
                         "); `save` writes files that have one");
    tess_json *root = NULL;
    TESS_TRY(tess_json_parse(text, strlen(text), &root, error));
    const tess_status status = compile(root, plan, error);
    tess_json_free(root);
    return status;
}

/* Every tensor must be there, in its shape, before memory is taken for it. */
static tess_status check_tensors(tess_weights *weights, const tensors *all, tess_error *error)
{
    for (int i = 0; i < all->count; i++) {
        const tess_weight *w = tess_weights_find(weights, all->list[i].name);
        const tess_node_part *part = &all->list[i].part;
        if (!w)
            return tess_fail(error, TESS_BAD_INPUT, "has no tensor '%s'", all->list[i].name);
        if (w->rank != part->rank || w->dims[0] != part->dims[0] ||
            (w->rank == 2 && w->dims[1] != part->dims[1]))
            return tess_fail(error, TESS_BAD_INPUT, "tensor '%s' has another shape than its pipeline says",
                             all->list[i].name);
    }
    return TESS_OK;
}

static tess_status read_tensors(tess_weights *weights, const tensors *all, tess_spectral_state *state,
                                tess_error *error)
{
    for (int i = 0; i < all->count; i++) {
        const tess_weight *w = tess_weights_find(weights, all->list[i].name);
        double *to = state->of[all->list[i].node] + all->list[i].part.offset;
        TESS_TRY(tess_weights_read_doubles(weights, w, 0, w->elements, to, error));
        for (int64_t v = 0; v < w->elements; v++)
            if (!isfinite(to[v]))
                return tess_fail(error, TESS_BAD_INPUT, "tensor '%s' has values that are not finite",
                                 w->name);
    }
    return TESS_OK;
}

static tess_status load(tess_memory *memory, tess_weights *weights, tess_spectral_plan **plan,
                        tess_spectral_state *state, tess_error *error)
{
    TESS_TRY(plan_of(weights, plan, error));
    tensors *all = tess_small_alloc(1, sizeof *all);
    tess_status status = all ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline");
    if (status == TESS_OK) {
        list_tensors(*plan, all);
        status = check_tensors(weights, all, error);
    }
    if (status == TESS_OK)
        status = tess_spectral_state_create(memory, *plan, state, error);
    if (status == TESS_OK)
        status = read_tensors(weights, all, state, error);
    tess_small_free(all);
    if (status != TESS_OK) {
        tess_spectral_state_free(state);
        tess_spectral_plan_free(*plan);
        *plan = NULL;
    }
    return status;
}

tess_status tess_spectral_load(tess_memory *memory, const char *path, tess_spectral_plan **plan,
                               tess_spectral_state *state, tess_error *error)
{
    tess_weights *weights = NULL;
    *plan = NULL;
    *state = (tess_spectral_state){0};
    TESS_TRY(tess_weights_open(path, &weights, error));
    const tess_status status = load(memory, weights, plan, state, error);
    tess_weights_close(weights);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

tess_status tess_spectral_load_plan(const char *path, tess_spectral_plan **plan, tess_error *error)
{
    tess_weights *weights = NULL;
    *plan = NULL;
    TESS_TRY(tess_weights_open(path, &weights, error));
    const tess_status status = plan_of(weights, plan, error);
    tess_weights_close(weights);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}
