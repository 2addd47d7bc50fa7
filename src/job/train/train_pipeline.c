/* Training of a hyperspectral pipeline for `detect`: its nodes, its cubes, phase 1, and its result. */
#include "job/train/train_pipeline.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/image.h"
#include "job/common/record.h"
#include "job/train/train_job.h"
#include "model/spectral/state_file.h"
#include "train/data_cubes.h"

/* The nodes that `train` names, or all that are trainable. */
static tess_status choose_nodes(tess_train_job *job, tess_pipeline *pipeline, bool fitted, tess_error *error)
{
    const tess_train_paths *names = &job->config.train;
    bool named[TESS_PIPELINE_NODES] = {false}, any = false;
    for (int i = 0; i < names->count; i++) {
        const int node = tess_pipeline_find(pipeline, names->list[i].given);
        if (node < 0)
            return tess_fail(error, TESS_BAD_INPUT, "train[%d]: no node is called '%.60s'", i,
                             names->list[i].given);
        const bool could = tess_node_trainable(&pipeline->nodes[node]);
        if (!could && (fitted || !tess_node_set_trainable(&pipeline->nodes[node], true)))
            return tess_fail(
                error, TESS_BAD_INPUT,
                fitted ? "train[%d]: node '%s' is not trainable in the file that the run starts from"
                       : "train[%d]: node '%s' is of a kind that is not trained",
                i, pipeline->nodes[node].name);
        named[node] = true;
    }
    for (int i = 0; i < pipeline->count; i++) {
        tess_node *node = &pipeline->nodes[i];
        job->spectral->trained[i] = node->kind == TESS_NODE_SOFT_BOUNDARY ||
                                    (tess_node_trainable(node) && (!names->count || named[i]));
        any |= job->spectral->trained[i] && node->kind != TESS_NODE_SOFT_BOUNDARY;
    }
    return any ? TESS_OK
               : tess_fail(error, TESS_BAD_INPUT,
                           "pipeline: no node is trainable; name some in `train`, or set \"trainable\" in "
                           "the graph");
}

/* Nodes that became trainable may not go with the settings of others. */
static tess_status check_again(const tess_pipeline *pipeline, tess_error *error)
{
    tess_pipeline same;
    tess_json *json = tess_pipeline_json(pipeline);
    const tess_status status = json ? tess_pipeline_parse(json, &same, error)
                                    : tess_fail(error, TESS_NO_MEMORY, "no memory for the pipeline");
    tess_json_free(json);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, "train");
}

static tess_status open_plan(tess_train_job *job, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    const tess_train_pipeline *given = &job->config.pipeline;
    const tess_cube_list *list = &s->cubes.list;
    tess_pipeline pipeline;
    if (given->fitted.path) {
        TESS_TRY(tess_spectral_load(job->engine.memory, given->fitted.path, &s->plan, &s->state, error));
        s->fitted = true;
        if (s->plan->bands != list->bands)
            return tess_fail(error, TESS_BAD_INPUT, "%s: was fitted to %d bands, and %s has %d",
                             given->fitted.path, s->plan->bands, list->entries[0].path, list->bands);
        pipeline = s->plan->pipeline;
        return choose_nodes(job, &pipeline, true, error);
    }
    const tess_status status = given->graph ? tess_pipeline_parse(given->graph, &pipeline, error)
                                            : tess_pipeline_named(given->name, &pipeline, error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, "pipeline");
    TESS_TRY(choose_nodes(job, &pipeline, false, error));
    TESS_TRY(check_again(&pipeline, error));
    TESS_TRY(tess_spectral_compile(&pipeline, list->bands, list->wavelengths, &s->plan, error));
    return tess_spectral_state_create(job->engine.memory, s->plan, &s->state, error);
}

/* What lies before the network must not change from image to image. */
static tess_status check_before(const tess_train_spectral *s, tess_error *error)
{
    const tess_node *nodes = s->plan->pipeline.nodes;
    for (int at = tess_spectral_network_at(s->plan); at != TESS_NODE_DATA; at = nodes[at].from)
        if (tess_node_scope_of(&nodes[at]) == TESS_SCOPE_IMAGE)
            return tess_fail(error, TESS_UNSUPPORTED,
                             "node '%s' (%s): is fitted to each image, and nodes behind it cannot be trained",
                             nodes[at].name, tess_node_kinds[nodes[at].kind].name);
    return TESS_OK;
}

static tess_status open_net(tess_train_job *job, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    tess_net *net = NULL;
    tess_parameters parameters;
    TESS_TRY(check_before(s, error));
    TESS_TRY(tess_spectral_trainer(s->plan, s->trained, &net, &s->masks, error));
    job->model =
        (tess_model_net){.architecture = "pipeline",
                         .net = net,
                         .channels = tess_spectral_gives(s->plan, tess_spectral_network_at(s->plan))};
    TESS_TRY(tess_parameters_list(net, &parameters, error));
    for (int i = 0; i < parameters.count; i++)
        job->model.parameters += parameters.list[i].running ? 0 : parameters.list[i].elements;
    tess_parameters_clear(&parameters);
    const size_t work = tess_spectral_path_values(s) + tess_spectral_network_workspace(s->plan);
    return tess_block_alloc(job->engine.memory, &s->work, TESS_MEM_HOST, work * sizeof(double), error);
}

tess_status tess_train_open_pipeline(tess_train_job *job, tess_error *error)
{
    int64_t side = INT64_MAX;
    tess_train_spectral *s = job->spectral = tess_small_alloc(1, sizeof *s);
    if (!s)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a pipeline");
    tess_spectral_watch(job);
    const tess_cube_settings settings = {
        .memory = job->engine.memory, .stop = &s->stop, .find_marks = !job->config.data.marks_are_values};
    TESS_TRY(tess_pixel_cubes_open(job->config.data.folders.list[0].path, &settings, &s->cubes, error));
    tess_marks_note(&job->settings->common, &s->cubes, TESS_TRAIN_KEEP_MARKS, TESS_TRAIN_DROP_ZEROS);
    for (int64_t i = 0; i < s->cubes.set.images; i++)
        side = tess_min_i64(side, tess_min_i64(s->cubes.image[i].height, s->cubes.image[i].width));
    TESS_TRY(tess_train_config_pipeline(&job->config, s->cubes.set.images, side, error));
    TESS_TRY(open_plan(job, error));
    TESS_TRY(open_net(job, error));
    s->condenses =
        tess_net_is_quadratic(job->model.net) && tess_cubes_are_whole(&s->cubes, job->config.data.crop);
    return TESS_OK;
}

void tess_train_step_size(const tess_train_job *job, int64_t crop, int64_t *height, int64_t *width)
{
    const bool condenses = job->spectral && job->spectral->condenses;
    *height = condenses ? 1 : crop;
    *width = condenses ? tess_condensed_pixels((int)job->model.channels) : crop;
}

tess_status tess_train_plan_first(tess_train_job *job, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    /* Then its file is written, or read into a second state. */
    s->start_bytes = tess_safetensors_bytes() + (job->settings->resume ? s->state.block.bytes : 0);
    const bool fits = (!s->fitted && !job->settings->resume) ||
                      tess_pipeline_kind(&s->plan->pipeline, TESS_NODE_FALSE_ALARM) >= 0;
    const tess_pixel_stage_settings stage = tess_spectral_stage(job);
    tess_mem_bytes condensing = {{0}};
    if (fits)
        TESS_TRY(tess_statistics_plan(&stage, s->plan, &s->cubes.set, &s->first, error));
    if (s->condenses)
        TESS_TRY(tess_condense_plan(&stage, s->plan, &s->cubes.set, &condensing, error));
    if (tess_mem_total(&condensing) + condensing.by[TESS_MEM_HOST] >
        tess_mem_total(&s->first) + s->first.by[TESS_MEM_HOST])
        s->first = condensing;
    if (fits || s->condenses)
        s->first.by[TESS_MEM_HOST] += tess_pixel_cubes_bytes(&s->cubes);
    return TESS_OK;
}

tess_status tess_train_open_cubes(tess_train_job *job, int64_t crop, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    const tess_cubes_settings settings = {.cubes = &s->cubes,
                                          .path = &s->path,
                                          .channels = (int)job->model.channels,
                                          .crop = crop,
                                          .batch = job->config.batch,
                                          .masks = s->masks,
                                          .shuffle = job->config.data.shuffle,
                                          .condensed = s->condenses ? &s->condensed : NULL,
                                          .memory = job->engine.memory};
    return tess_cubes_open(&settings, &job->source, error);
}

tess_status tess_train_open_pipeline_validation(tess_train_job *job, tess_error *error)
{
    const tess_cubes_validator_settings settings = {.stage = tess_spectral_stage(job),
                                                    .common = &job->settings->common,
                                                    .marks_are_values = job->config.data.marks_are_values,
                                                    .folder = job->config.validation.folder.path,
                                                    .state = &job->spectral->state};
    return tess_validator_open_cubes(&job->engine, &settings, &job->validator, error);
}

/* What is held from the beginning to the end. */
size_t tess_train_pipeline_bytes(const tess_train_job *job)
{
    const size_t condensed = tess_spectral_condensed_bytes(job);
    return job->spectral->state.block.bytes + job->spectral->work.bytes +
           (condensed ? tess_block_granted(condensed) : 0);
}

tess_mem_bytes tess_train_first_bytes(const tess_train_job *job)
{
    const tess_train_spectral *s = job->spectral;
    const tess_mem_bytes file = {.by[TESS_MEM_HOST] = s->start_bytes};
    return tess_mem_total(&s->first) + s->first.by[TESS_MEM_HOST] > s->start_bytes ? s->first : file;
}

tess_status tess_train_each_cube(const tess_train_job *job,
                                 tess_status (*check)(const void *user, const char *path, tess_error *error),
                                 const void *user, tess_error *error)
{
    const tess_cube_list *lists[] = {&job->spectral->cubes.list,
                                     job->validator ? tess_validator_cubes(job->validator) : NULL};
    TESS_TRY(check(user, job->config.pipeline.fitted.path, error));
    for (int k = 0; k < 2; k++)
        for (int64_t f = 0; lists[k] && f < lists[k]->count; f++) {
            char *mask = tess_cube_mask_beside(lists[k]->entries[f].path);
            tess_status status = check(user, lists[k]->entries[f].path, error);
            if (status == TESS_OK && mask)
                status = check(user, mask, error);
            tess_small_free(mask);
            TESS_TRY(status);
        }
    return TESS_OK;
}

void tess_train_close_pipeline(tess_train_job *job)
{
    tess_train_spectral *s = job->spectral;
    if (!s)
        return;
    tess_block_free(&s->work);
    tess_block_free(&s->condensed);
    tess_spectral_state_free(&s->state);
    tess_spectral_plan_free(s->plan);
    tess_pixel_cubes_close(&s->cubes);
    tess_small_free(s);
}

double tess_train_epoch(const tess_train_job *job, int64_t step)
{
    return job->spectral ? (double)(step * job->config.batch / job->source->items) : 0;
}

/* A selector's temperature is that of the last step. */
tess_status tess_train_take_values(tess_train_job *job, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    const tess_parameters *parameters = tess_training_parameters(job->training);
    const tess_training_state from = job->config.average > 0 ? TESS_STATE_AVERAGE : TESS_STATE_PARAMETERS;
    int64_t most = 1;
    for (int i = 0; i < parameters->count; i++)
        most = tess_max_i64(most, parameters->list[i].elements);
    float *values = tess_small_alloc((size_t)most, sizeof *values);
    tess_status status = values ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the parameters");
    for (int i = 0; i < parameters->count && status == TESS_OK; i++) {
        const tess_parameter *one = &parameters->list[i];
        status = tess_training_get(job->training, one->running ? TESS_STATE_RUNNING : from, one->offset,
                                   one->elements, values, error);
        if (status == TESS_OK)
            tess_spectral_set(&s->state, one, values);
    }
    tess_small_free(values);
    for (int i = 0; i < s->plan->pipeline.count; i++) {
        const tess_node *node = &s->plan->pipeline.nodes[i];
        if (node->kind == TESS_NODE_SELECTOR && s->trained[i])
            tess_spectral_part(&s->state, i, "temperature")[0] =
                fmax(node->values[TESS_SELECTOR_LEAST],
                     node->values[TESS_SELECTOR_TEMPERATURE] *
                         pow(node->values[TESS_SELECTOR_DECAY],
                             tess_train_epoch(job, tess_max_i64(job->state.step - 1, 0))));
    }
    return status;
}

/* The threshold for a rate of false alarms is that of the trained scores. Phase 1 needs as much memory, and data are gone. */
static tess_status calibrate(tess_train_job *job, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    const tess_pixel_stage_settings stage = tess_spectral_stage(job);
    tess_statistics *statistics = NULL;
    if (tess_pipeline_kind(&s->plan->pipeline, TESS_NODE_FALSE_ALARM) < 0)
        return TESS_OK;
    tess_data_close(job->queue);
    job->queue = NULL;
    tess_status status = tess_statistics_create(&stage, &s->cubes.set, &s->state, &statistics, error);
    if (status == TESS_OK)
        status = tess_statistics_calibrate(statistics, &s->cubes.set, error);
    tess_statistics_destroy(statistics);
    tess_pixel_cubes_rest(&s->cubes);
    return status;
}

tess_status tess_train_write_pipeline(tess_train_job *job, tess_error *error)
{
    tess_json *config = tess_train_config_json(&job->config), *figures = tess_train_figures(job);
    char *texts[] = {tess_json_dump(config, false), tess_json_dump(figures, false)};
    tess_status status = tess_train_take_values(job, error);
    if (status == TESS_OK)
        status = calibrate(job, error);
    const tess_spectral_note notes[] = {{"config", texts[0]}, {"training", texts[1]}};
    if (status == TESS_OK)
        status = texts[0] && texts[1] ? tess_spectral_save(job->engine.memory, job->config.output.path,
                                                           &job->spectral->state, notes, 2, error)
                                      : tess_fail(error, TESS_NO_MEMORY, "no memory for the metadata");
    for (int i = 0; i < 2; i++)
        tess_small_free(texts[i]);
    tess_json_free(config);
    tess_json_free(figures);
    return status;
}

void tess_train_describe_pipeline(const tess_train_job *job, tess_json **record)
{
    const tess_train_spectral *s = job->spectral;
    tess_json *nodes = tess_json_array();
    for (int i = 0; i < s->plan->pipeline.count; i++)
        if (s->trained[i])
            tess_json_append_string(&nodes, s->plan->pipeline.nodes[i].name);
    tess_json_set(record, "trained_nodes", nodes);
    tess_json_set_int(record, "passes", s->fitted ? 0 : s->plan->passes);
    tess_json_set_bool(record, "condensed", s->condenses);
    tess_json_set_double(record, "epochs",
                         (double)(job->config.steps * job->config.batch) / (double)job->source->items);
    tess_json_set_double(record, "statistics_seconds", s->statistics_seconds);
}
