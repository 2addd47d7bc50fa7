/* Opens a training run: configuration, device, network, data, plan. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "job/common/choice.h"
#include "job/common/note.h"
#include "job/train/train_job.h"
#include "model/diffusion.h"

static const struct {
    const char *name;
    tess_train_precision precision;
} precisions[] = {{"auto", TESS_TRAIN_AUTO},
                  {"fp32", TESS_TRAIN_FP32},
                  {"tf32", TESS_TRAIN_TF32},
                  {"bf16", TESS_TRAIN_BF16},
                  {"fp16", TESS_TRAIN_FP16}};
enum { PRECISIONS = sizeof precisions / sizeof *precisions };

static const char *asked_precision(const tess_train_job *job)
{
    const char *name = job->settings->common.precision;
    for (int i = 0; i < PRECISIONS && strcmp(job->settings->common.precision, "auto") == 0; i++)
        if (precisions[i].precision == job->config.precision)
            name = precisions[i].name;
    return name;
}

/* The configuration says from here on what is used: checkpoints compare it, and the result's metadata have it. */
static tess_status set_precision(tess_train_job *job, tess_error *error)
{
    const char *name = asked_precision(job);
    const bool pipeline = job->config.network.architecture == TESS_TRAIN_PIPELINE;
    if (strcmp(name, "auto") == 0) /* bf16 needs no loss scale and is as fast as fp16 */
        name = job->engine.device->host_memory || pipeline ? "fp32" : "bf16";
    tess_precision chosen;
    TESS_TRY(tess_precision_of(&job->engine.facts, name, &chosen, error));
    job->engine.dtype = chosen.dtype;
    job->engine.tf32 = chosen.tf32;
    job->engine.precision = chosen.name;
    for (int i = 0; i < PRECISIONS; i++)
        if (strcmp(precisions[i].name, chosen.name) == 0)
            job->config.precision = precisions[i].precision;
    return TESS_OK;
}

/* What the caller gives replaces the file's. */
static tess_common engine_settings(const tess_train_job *job)
{
    tess_common common = job->settings->common;
    common.progress = NULL;
    if (strcmp(common.device, "auto") == 0)
        common.device = job->config.device;
    common.precision = asked_precision(job);
    return common;
}

/* Decides on the device when the network is known: the steps of all phases are the work. */
static tess_status choose_device(tess_train_job *job, tess_error *error)
{
    tess_common common = engine_settings(job);
    const char *const asked = common.precision;
    tess_work work = {.card_precision = tess_choice_card_precision(asked, job->spectral ? "F32" : "BF16")};
    job->engine.dtype = strcmp(asked, "bf16") == 0 ? TESS_BF16 : TESS_F32;
    tess_status status = TESS_OK;
    if (tess_choice_wants_work(&job->engine))
        status = tess_train_list_work(job, &work, error);
    status = tess_dist_agree(job->dist, status, error);
    if (status == TESS_OK && tess_choice_wants_work(&job->engine))
        status = tess_choice_settle(&job->engine, &common, &work, error);
    tess_work_clear(&work);
    TESS_TRY(status);
    TESS_TRY(set_precision(job, error));
    snprintf(job->factor, sizeof job->factor, "train %s %s", job->model.architecture,
             job->engine.tf32 ? "TF32" : tess_dtype_name(job->engine.dtype));
    return TESS_OK;
}

static void set_limit(tess_train_job *job)
{
    const uint64_t asked = job->settings->common.memory_limit, limit = asked ? asked : job->config.memory;
    job->limit = limit ? limit : tess_engine_free_limit(&job->engine);
}

static tess_status open_engine(tess_train_job *job, tess_memory *memory, tess_error *error)
{
    const tess_common common = engine_settings(job);
    if (job->settings->seed_given)
        job->config.seed = common.seed;
    return tess_choice_open_ranks(&job->engine, job->dist, memory, &common, error);
}

static tess_status open_model(tess_train_job *job, tess_error *error)
{
    static const char *const names[] = {[TESS_TRAIN_DRUNET] = "drunet",
                                        [TESS_TRAIN_UNET] = "unet",
                                        [TESS_TRAIN_DNCNN] = "dncnn",
                                        [TESS_TRAIN_DIFFUSION] = "diffusion"};
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
        if (config->network.architecture == TESS_TRAIN_DIFFUSION)
            tess_train_shape_diffusion(config, &shape);
        TESS_TRY(tess_model_new(&shape, &job->start, error));
    }
    return tess_diffusion_has(job->start) ? tess_train_open_diffusion(job, error)
                                          : tess_train_open_denoiser(job, error);
}

static tess_status open_network(tess_train_job *job, tess_error *error)
{
    return job->config.network.architecture == TESS_TRAIN_PIPELINE ? tess_train_open_pipeline(job, error)
                                                                   : open_model(job, error);
}

static tess_status open_validation(tess_train_job *job, tess_error *error)
{
    if (!job->config.validation.folder.path || !tess_train_leads(job))
        return TESS_OK;
    if (job->spectral)
        return tess_train_open_pipeline_validation(job, error);
    return tess_validator_open(&job->engine, &job->stop, &job->config, job->start, &job->validator, error);
}

static tess_status read_config(tess_train_job *job, tess_error *error)
{
    if (!job->settings->config)
        return tess_fail(error, TESS_BAD_OPTION, "a configuration file is missing");
    TESS_TRY(tess_train_config_read(job->settings->config, &job->config, error));
    TESS_TRY(tess_train_config_check_files(&job->config, error));
    TESS_TRY(tess_train_check_parts(job, error));
    job->losses = tess_small_alloc((size_t)job->dist->size, sizeof *job->losses);
    return job->losses ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for the ranks");
}

/* Data, validation, and the plan of all phases. */
static tess_status open_parts(tess_train_job *job, tess_error *error)
{
    if (job->spectral)
        TESS_TRY(tess_train_plan_first(job, error));
    TESS_TRY(open_validation(job, error));
    TESS_TRY(tess_train_plan_phases(job, error));
    const int64_t links = job->source->images ? tess_images_links(job->source->images) : 0;
    if (links)
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "data.folders: %lld link(s) to folders are not followed; name those folders themselves",
                  (long long)links);
    return tess_train_check_files(job, error);
}

tess_status tess_train_open(tess_train_job *job, tess_memory *memory, tess_error *error)
{
    const tess_common *common = &job->settings->common;
    tess_stop_init(&job->stop, common->progress, common->progress_user);
    TESS_TRY(tess_dist_agree(job->dist, read_config(job, error), error));
    TESS_TRY(open_engine(job, memory, error));
    TESS_TRY(tess_dist_agree(job->dist, open_network(job, error), error));
    TESS_TRY(tess_dist_agree(job->dist, choose_device(job, error), error));
    TESS_TRY(tess_train_link(job, error));
    set_limit(job);
    TESS_TRY(tess_dist_agree(job->dist, open_parts(job, error), error));
    return tess_train_share_plan(job, error);
}

void tess_train_close(tess_train_job *job)
{
    tess_train_close_phase(job);
    tess_validator_close(job->validator);
    tess_checkpoints_close(job->checkpoints);
    tess_log_close(job->log);
    tess_events_close(job->events);
    tess_model_clear(&job->model);
    tess_train_close_pipeline(job);
    tess_weights_close(job->start);
    tess_card_links_close(&job->links);
    if (job->engine.device)
        tess_engine_close(&job->engine);
    tess_train_config_clear(&job->config);
    tess_small_free(job->losses);
    tess_small_free(job->parts);
}
