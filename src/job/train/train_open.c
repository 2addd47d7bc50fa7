/* Opens a training run: configuration, device, network, data, plan. */
#include <string.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/train/train_job.h"

/* What the caller gives replaces the file's. */
static tess_status open_engine(tess_train_job *job, tess_memory *memory, tess_error *error)
{
    static const char *const names[] = {[TESS_TRAIN_AUTO] = "auto",
                                        [TESS_TRAIN_FP32] = "fp32",
                                        [TESS_TRAIN_BF16] = "bf16",
                                        [TESS_TRAIN_FP16] = "fp16"};
    tess_common common = job->settings->common;
    common.progress = NULL;
    if (strcmp(common.device, "auto") == 0)
        common.device = job->config.device;
    const char *precision =
        strcmp(common.precision, "auto") == 0 ? names[job->config.precision] : common.precision;
    common.precision = "auto";
    TESS_TRY(tess_engine_open(&job->engine, memory, &common, error));
    if (strcmp(precision, "auto") == 0) /* bf16 needs no loss scale and is as fast as fp16 */
        precision = job->engine.device->host_memory ? "fp32" : "bf16";
    tess_precision chosen;
    TESS_TRY(tess_precision_of(&job->engine.facts, precision, &chosen, error));
    job->engine.dtype = chosen.dtype;
    job->engine.tf32 = chosen.tf32;
    job->engine.precision = chosen.name;
    const uint64_t asked = common.memory_limit ? common.memory_limit : job->config.memory;
    job->limit = asked ? asked : tess_engine_free_limit(&job->engine);
    return TESS_OK;
}

static tess_status open_network(tess_train_job *job, tess_error *error)
{
    static const char *const names[] = {
        [TESS_TRAIN_DRUNET] = "drunet", [TESS_TRAIN_UNET] = "unet", [TESS_TRAIN_DNCNN] = "dncnn"};
    const tess_train_config *config = &job->config;
    if (config->network.weights.path) {
        TESS_TRY(tess_model_open(config->network.weights.path, &job->start, error));
    } else {
        tess_model_shape shape = {.architecture = names[config->network.architecture],
                                  .channels = config->network.channels,
                                  .width_count = config->network.widths.count,
                                  .blocks = (int)config->network.blocks,
                                  .depth = (int)config->network.depth,
                                  .batch_norm = config->network.norm == TESS_TRAIN_NORM_BATCH};
        for (int i = 0; i < shape.width_count && i < TESS_MODEL_WIDTHS; i++)
            shape.widths[i] = config->network.widths.list[i];
        TESS_TRY(tess_model_new(&shape, &job->start, error));
    }
    TESS_TRY(tess_model_recognise_trained(job->start, &job->model, error));
    if (job->settings->resume)
        return TESS_OK;
    tess_parameters parameters;
    TESS_TRY(tess_parameters_list(job->model.net, &parameters, error));
    job->values_bytes = tess_block_granted((size_t)parameters.trained * sizeof(float)) +
                        tess_block_granted((size_t)(parameters.running + 1) * sizeof(float));
    tess_parameters_clear(&parameters);
    return TESS_OK;
}

static tess_status open_source(tess_train_job *job, int64_t crop, uint64_t cache, tess_error *error)
{
    const tess_train_config *config = &job->config;
    const char *folders[TESS_CONFIG_PATHS], *exclude[TESS_CONFIG_PATHS];
    tess_folder_settings settings;
    tess_folder_defaults(&settings);
    for (int i = 0; i < config->data.folders.count; i++)
        folders[i] = config->data.folders.list[i].path;
    for (int i = 0; i < config->data.exclude.count; i++)
        exclude[i] = config->data.exclude.list[i].given;
    settings.images = (tess_images_settings){.paths = folders,
                                             .path_count = config->data.folders.count,
                                             .exclude = exclude,
                                             .exclude_count = config->data.exclude.count,
                                             .recursive = true,
                                             .channels = (int)job->model.channels,
                                             .budget = (size_t)cache,
                                             .memory = job->engine.memory};
    settings.crop = crop;
    settings.scales = (int)tess_min_i64(config->data.scales.count, TESS_FOLDER_SCALES);
    for (int i = 0; i < settings.scales; i++) {
        settings.scale[i] = config->data.scales.list[i];
        settings.share[i] = config->data.scales.weight[i];
    }
    settings.low = config->data.sigma[0];
    settings.high = config->data.sigma[1];
    return tess_folder_open(&settings, &job->source, error);
}

/* Bytes of everything but the step, by category. The first values of the parameters are gone when data and validation
 * come. */
static tess_mem_bytes other_bytes(const tess_train_job *job, int64_t micro_batch)
{
    const size_t values = job->values_bytes;
    tess_mem_bytes bytes = {{0}};
    if (job->validator)
        bytes = tess_validator_bytes(job->validator);
    bytes.by[TESS_MEM_IO] += tess_feed_bytes(job->engine.device, job->source, micro_batch);
    bytes.by[TESS_MEM_HOST] += tess_data_bytes(&job->data);
    if (!job->engine.device->host_memory)
        bytes.by[TESS_MEM_HOST] = bytes.by[TESS_MEM_HOST] > values ? bytes.by[TESS_MEM_HOST] : values;
    else if (values > tess_mem_total(&bytes) + bytes.by[TESS_MEM_HOST])
        bytes = (tess_mem_bytes){.by[TESS_MEM_HOST] = values};
    bytes.by[TESS_MEM_HOST] += TESS_CHECKPOINT_BUFFER;
    if (job->engine.device->host_memory) {
        bytes.by[TESS_MEM_IO] += bytes.by[TESS_MEM_HOST];
        bytes.by[TESS_MEM_HOST] = 0;
    }
    return bytes;
}

/* Of gradients, after which their parameters are updated: enough to make the launches of an update cheap on a card. */
enum { UPDATE_BYTES = 16 << 20 };

static tess_training_request request_of(const tess_train_job *job, const tess_train_phase *phase)
{
    static const tess_recompute recompute[] = {[TESS_TRAIN_RECOMPUTE_AUTO] = TESS_RECOMPUTE_NONE,
                                               [TESS_TRAIN_RECOMPUTE_NONE] = TESS_RECOMPUTE_NONE,
                                               [TESS_TRAIN_RECOMPUTE_BLOCKS] = TESS_RECOMPUTE_BLOCKS,
                                               [TESS_TRAIN_RECOMPUTE_ALL] = TESS_RECOMPUTE_ALL};
    const tess_train_config *config = &job->config;
    const tess_mem_bytes other = other_bytes(job, phase->batch); /* less if the batch is divided */
    return (tess_training_request){.settings = {.dtype = job->engine.dtype,
                                                .n = phase->batch,
                                                .h = phase->crop,
                                                .w = phase->crop,
                                                .micro_batches = (int)config->micro_batches,
                                                .recompute = recompute[config->recompute],
                                                .loss = tess_train_config_loss(config),
                                                .optimize = tess_train_config_optimize(config),
                                                .average = config->average > 0,
                                                .tf32 = job->engine.tf32,
                                                .seed = tess_data_seed(config->seed, TESS_DATA_DROPOUT),
                                                .update_bytes = UPDATE_BYTES},
                                   .recompute_auto = config->recompute == TESS_TRAIN_RECOMPUTE_AUTO,
                                   .limit = job->limit,
                                   .besides = tess_mem_total(&other)};
}

static tess_status plan_phase(tess_train_job *job, const tess_train_phase *phase, uint64_t cache,
                              tess_error *error)
{
    tess_train_close_phase(job);
    TESS_TRY(open_source(job, phase->crop, cache, error));
    job->data = (tess_data_settings){.source = job->source,
                                     .device = job->engine.device,
                                     .stop = &job->stop,
                                     .seed = job->config.seed,
                                     .batch = phase->batch,
                                     .parts = 1,
                                     .depth = 3,
                                     .workers = (int)job->config.data.workers};
    if (job->data.workers == 0 && job->engine.device->host_memory)
        job->data.workers = 1; /* the step needs the cores */
    const tess_training_request request = request_of(job, phase);
    TESS_TRY(tess_plan_training(job->model.net, job->engine.device, job->engine.rates, &request, &job->choice,
                                &job->training, error));
    job->data.parts = job->choice.micro_batches;
    job->data.depth = job->choice.micro_batches + 2; /* all of a step, and one ahead */
    job->phase = phase;
    job->choices[phase - job->config.phases.list] = job->choice;
    return TESS_OK;
}

/* On the host, images share the limit with the step: a quarter of it, or nothing if the step needs that. */
tess_status tess_train_plan_phase(tess_train_job *job, const tess_train_phase *phase, tess_error *error)
{
    const bool host = job->engine.device->host_memory;
    const uint64_t asked = job->config.data.cache, quarter = job->limit / 4;
    const tess_status status = plan_phase(job, phase, host && quarter < asked ? quarter : asked, error);
    return host && asked && status == TESS_OVER_LIMIT ? plan_phase(job, phase, 0, error) : status;
}

/* All bytes of the planned phase. */
static tess_mem_bytes phase_bytes(const tess_train_job *job)
{
    tess_mem_bytes bytes = tess_training_bytes(job->training);
    const tess_mem_bytes other = other_bytes(job, job->phase->batch / job->choice.micro_batches);
    for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
        bytes.by[i] += other.by[i];
    return bytes;
}

/* A later phase that does not fit must not end a run of hours, so all are planned; the first one is left open. */
static tess_status plan_phases(tess_train_job *job, tess_error *error)
{
    for (int i = job->config.phases.count - 1; i >= 0; i--) {
        TESS_TRY(tess_train_plan_phase(job, &job->config.phases.list[i], error));
        const tess_mem_bytes bytes = phase_bytes(job);
        if (tess_mem_total(&bytes) > tess_mem_total(&job->planned))
            job->planned = bytes;
    }
    return TESS_OK;
}

static tess_status open_validation(tess_train_job *job, tess_error *error)
{
    if (!job->config.validation.folder.path)
        return TESS_OK;
    TESS_TRY(tess_validator_open(&job->engine, &job->stop, &job->config, job->start, &job->validator, error));
    const tess_mem_bytes bytes = tess_validator_bytes(job->validator);
    const uint64_t total =
        tess_mem_total(&bytes) + (job->engine.device->host_memory ? bytes.by[TESS_MEM_HOST] : 0);
    if (total <= job->limit)
        return TESS_OK;
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "validation.folder: its largest image needs %.1f MiB, and %.1f MiB are allowed; use smaller "
        "images, or a larger `memory_limit`",
        (double)total / (1 << 20), (double)job->limit / (1 << 20));
}

void tess_train_close_phase(tess_train_job *job)
{
    tess_data_close(job->queue);
    job->queue = NULL;
    tess_feed_close(&job->feed);
    tess_training_destroy(job->training);
    job->training = NULL;
    tess_source_close(job->source);
    job->source = NULL;
    job->phase = NULL;
}

static tess_status check_config(const tess_train_job *job, tess_error *error)
{
    const tess_loss loss = job->config.loss.kind;
    if (loss == TESS_MASKED_MSE || loss == TESS_BCE_LOGITS)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "loss.kind: a folder of images has no masks or labels; use mse, l1, charbonnier or rmse");
    return tess_train_config_check_files(&job->config, error);
}

tess_status tess_train_open(tess_train_job *job, tess_memory *memory, tess_error *error)
{
    const tess_common *common = &job->settings->common;
    tess_stop_init(&job->stop, common->progress, common->progress_user);
    if (!job->settings->config)
        return tess_fail(error, TESS_BAD_OPTION, "a configuration file is missing");
    TESS_TRY(tess_train_config_read(job->settings->config, &job->config, error));
    TESS_TRY(check_config(job, error));
    TESS_TRY(open_engine(job, memory, error));
    TESS_TRY(open_network(job, error));
    TESS_TRY(open_validation(job, error));
    return plan_phases(job, error);
}

void tess_train_close(tess_train_job *job)
{
    tess_train_close_phase(job);
    tess_validator_close(job->validator);
    tess_checkpoints_close(job->checkpoints);
    tess_log_close(job->log);
    tess_events_close(job->events);
    tess_model_clear(&job->model);
    tess_weights_close(job->start);
    if (job->engine.device)
        tess_engine_close(&job->engine);
    tess_train_config_clear(&job->config);
}
