/* Plans the phases of a training run: data, step and memory. */
#include <math.h>
#include <stdio.h>

#include "base/checked.h"
#include "job/common/note.h"
#include "job/train/train_job.h"

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

bool tess_train_overlaps(const tess_train_job *job, int micro_batches)
{
    return job->engine.separate_memory && job->dist->size == 1 &&
           tess_steps_overlap(job->engine.dtype, micro_batches);
}

static tess_data_settings data_of(const tess_train_job *job, int micro_batches)
{
    tess_data_settings data = {.source = job->source,
                               .device = job->engine.device,
                               .seed = job->config.seed,
                               .batch = job->part.count,
                               .first = job->part.first,
                               .parts = micro_batches,
                               .depth =
                                   tess_steps_depth(tess_train_overlaps(job, micro_batches), micro_batches),
                               .workers = (int)job->config.data.workers};
    if (data.workers == 0 && job->engine.device->host_memory)
        data.workers = 1; /* the step needs the cores */
    else if (data.workers == 0)
        data.workers = job->dist->threads; /* a rank's share of the cores; alone 0, which is all of them */
    return data;
}

/* The larger of what is held one after the other: phase 1 of a pipeline, then data. */
static tess_mem_bytes larger_bytes(const tess_mem_bytes *a, const tess_mem_bytes *b)
{
    return tess_mem_total(a) + a->by[TESS_MEM_HOST] > tess_mem_total(b) + b->by[TESS_MEM_HOST] ? *a : *b;
}

/* Bytes of everything but the step, by category, for this rank's part of a batch in so many parts. The first values of the parameters are
 * gone when data and validation come. */
static tess_mem_bytes other_bytes(const tess_train_job *job, int micro_batches)
{
    const size_t values = job->values_bytes;
    const tess_data_settings data = data_of(job, micro_batches);
    tess_mem_bytes bytes = {{0}};
    if (job->validator)
        bytes = tess_validator_bytes(job->validator);
    bytes.by[TESS_MEM_IO] +=
        tess_feed_bytes(job->engine.device, job->source, job->part.count / micro_batches);
    bytes.by[TESS_MEM_HOST] += tess_data_bytes(&data);
    if (!job->engine.device->host_memory)
        bytes.by[TESS_MEM_HOST] = bytes.by[TESS_MEM_HOST] > values ? bytes.by[TESS_MEM_HOST] : values;
    else if (values > tess_mem_total(&bytes) + bytes.by[TESS_MEM_HOST])
        bytes = (tess_mem_bytes){.by[TESS_MEM_HOST] = values};
    if (job->spectral) {
        const tess_mem_bytes first = tess_train_first_bytes(job);
        bytes = larger_bytes(&first, &bytes);
        bytes.by[TESS_MEM_HOST] += tess_train_pipeline_bytes(job);
    }
    bytes.by[TESS_MEM_WORKSPACE] += job->card_sum_bytes;
    bytes.by[TESS_MEM_HOST] += job->sum_bytes + (tess_train_leads(job) ? TESS_CHECKPOINT_BUFFER : 0);
    if (job->engine.device->host_memory) {
        bytes.by[TESS_MEM_IO] += bytes.by[TESS_MEM_HOST];
        bytes.by[TESS_MEM_HOST] = 0;
    }
    return bytes;
}

static uint64_t besides(const void *user, int micro_batches)
{
    const tess_train_job *job = user;
    const tess_mem_bytes other = other_bytes(job, micro_batches);
    return tess_mem_total(&other);
}

/* Of gradients, after which parameters are updated the first time: a small share of the activations at that point. */
enum { UPDATE_BYTES = 1 << 20 };

static tess_training_request request_of(const tess_train_job *job, const tess_train_phase *phase)
{
    static const tess_recompute recompute[] = {[TESS_TRAIN_RECOMPUTE_AUTO] = TESS_RECOMPUTE_NONE,
                                               [TESS_TRAIN_RECOMPUTE_NONE] = TESS_RECOMPUTE_NONE,
                                               [TESS_TRAIN_RECOMPUTE_BLOCKS] = TESS_RECOMPUTE_BLOCKS,
                                               [TESS_TRAIN_RECOMPUTE_ALL] = TESS_RECOMPUTE_ALL};
    const tess_train_config *config = &job->config;
    const tess_op_loss masked = {.kind = TESS_MASKED_MSE, .share = 1};
    const tess_train_part part = tess_train_part_of(job, phase->batch, job->dist->rank);
    int64_t height, width;
    tess_train_step_size(job, phase->crop, &height, &width);
    return (tess_training_request){.settings = {.dtype = job->engine.dtype,
                                                .n = part.count,
                                                .share = (double)part.count / (double)phase->batch,
                                                .first = part.first,
                                                .h = height,
                                                .w = width,
                                                .micro_batches = part.micro_batches,
                                                .recompute = recompute[config->recompute],
                                                .loss = job->levels ? masked : tess_train_config_loss(config),
                                                .optimize = tess_train_config_optimize(config),
                                                .average = config->average > 0,
                                                .tf32 = job->engine.tf32,
                                                .pair_gradients = true,
                                                .seed = tess_data_seed(config->seed, TESS_DATA_DROPOUT),
                                                .update_bytes = job->dist->size > 1 ? 0 : UPDATE_BYTES},
                                   .recompute_auto = config->recompute == TESS_TRAIN_RECOMPUTE_AUTO,
                                   .limit = job->limit,
                                   .besides = besides,
                                   .user = job,
                                   .factor = job->factor};
}

/* The steps of all phases, as if each batch fitted: that is what decides between devices. */
tess_status tess_train_list_work(tess_train_job *job, tess_work *work, tess_error *error)
{
    tess_work_phase *phase = tess_work_begin(work, "train", "steps");
    snprintf(phase->factor, sizeof phase->factor, "train %s", job->model.architecture);
    phase->pieces = 0;
    phase->copies_overlap = true;
    for (int i = 0; i < job->config.phases.count; i++) {
        const tess_train_phase *part = &job->config.phases.list[i];
        tess_training_settings settings = request_of(job, part).settings;
        tess_training *training = NULL;
        settings.micro_batches = 1;
        TESS_TRY(tess_training_create(job->model.net, job->engine.device, &settings, &training, error));
        for (int k = 0; k < tess_training_op_count(training); k++)
            tess_work_add_op(work, phase, job->engine.rates, tess_training_op(training, k), true,
                             (double)part->steps);
        tess_training_destroy(training);
        phase->up += (double)(part->steps * settings.n * settings.h * settings.w * job->model.channels) * 2 *
                     (double)sizeof(float);
        phase->copies += (double)part->steps;
        phase->pieces += (double)part->steps;
    }
    work->shapes = job->config.phases.count;
    work->weight_bytes = 4 * (double)job->model.parameters;
    return TESS_OK;
}

static tess_status plan_phase(tess_train_job *job, const tess_train_phase *phase, uint64_t cache,
                              tess_error *error)
{
    tess_train_close_phase(job);
    TESS_TRY(job->spectral ? tess_train_open_cubes(job, phase->crop, error)
             : job->levels ? tess_train_open_maps(job, phase->crop, cache, error)
                           : open_source(job, phase->crop, cache, error));
    job->phase = phase;
    job->part = tess_train_part_of(job, phase->batch, job->dist->rank);
    const tess_training_request request = request_of(job, phase);
    TESS_TRY(tess_plan_training(job->model.net, job->engine.device, job->engine.rates, &request, &job->choice,
                                &job->training, &job->least, error));
    job->data = data_of(job, job->choice.micro_batches);
    job->part.micro_batches = job->choice.micro_batches;
    job->data.stop = &job->stop;
    job->choices[phase - job->config.phases.list] = job->choice;
    return TESS_OK;
}

/* Seconds of a step of the planned phase: crops are prepared meanwhile, and those of images that are not kept are decoded. */
static double step_seconds(const tess_train_job *job)
{
    static const double rate = 1e8; /* decoded bytes a second, of a thread: about a PNG's */
    const tess_images *images = job->source->images;
    const int64_t count = tess_images_count(images);
    double bytes = 0;
    for (int64_t i = 0; i < count; i++) {
        const tess_images_file *file = tess_images_at(images, i);
        if (!file->kept)
            bytes += (double)file->height * (double)file->width * file->channels *
                     (double)tess_dtype_size(file->dtype);
    }
    const double decoding = bytes / (double)count * (double)job->part.count / (rate * job->data.workers);
    return decoding > job->choice.seconds ? decoding : job->choice.seconds;
}

/* On the host, images share the limit with the step. They get a quarter of it, or nothing if that makes the step faster, or
 * if it needs all. */
tess_status tess_train_plan_phase(tess_train_job *job, const tess_train_phase *phase, tess_error *error)
{
    const bool host = job->engine.device->host_memory;
    const uint64_t asked = job->config.data.cache, quarter = job->limit / 4,
                   cache = host && quarter < asked ? quarter : asked;
    tess_status status = plan_phase(job, phase, cache, error);
    if (!host || !asked || (status != TESS_OK && status != TESS_OVER_LIMIT) ||
        (status == TESS_OK && job->choice.first))
        return status;
    const double seconds = status == TESS_OK ? step_seconds(job) : INFINITY;
    status = plan_phase(job, phase, 0, error);
    if (isinf(seconds) || (status == TESS_OK && step_seconds(job) < seconds))
        return status;
    return plan_phase(job, phase, cache, error);
}

/* All bytes of the planned phase. */
static tess_mem_bytes phase_bytes(const tess_train_job *job)
{
    tess_mem_bytes bytes = tess_training_bytes(job->training);
    const tess_mem_bytes other = other_bytes(job, job->choice.micro_batches);
    for (int i = 0; i < TESS_MEM_CATEGORIES; i++)
        bytes.by[i] += other.by[i];
    return bytes;
}

/* A refusal because of a validation image names it: then the step is not what needs the memory. */
static tess_status refuse(const tess_train_job *job, const tess_error *why, tess_error *error)
{
    const tess_mem_bytes none = {{0}}, bytes = job->validator ? tess_validator_bytes(job->validator) : none;
    const uint64_t total =
        tess_mem_total(&bytes) + (job->engine.device->host_memory ? bytes.by[TESS_MEM_HOST] : 0);
    if (total <= job->limit)
        return tess_fail(error, TESS_OVER_LIMIT, "%s", why->text);
    return tess_fail(
        error, TESS_OVER_LIMIT,
        "validation.folder: its largest image needs %.1f MiB, and %.1f MiB are allowed; use smaller "
        "images, or `memory_limit` %lluM, which is enough for the whole run",
        (double)total / (1 << 20), (double)job->limit / (1 << 20),
        (unsigned long long)((job->least + (1 << 20) - 1) >> 20));
}

/* A later phase that does not fit must not end a run of hours, so all are planned; the first one is left open. If some
 * do not fit, the refusal is about the one that needs most: its number is enough for all. */
tess_status tess_train_plan_phases(tess_train_job *job, tess_error *error)
{
    uint64_t most = 0;
    tess_error why = {""};
    for (int i = job->config.phases.count - 1; i >= 0; i--) {
        const tess_status status = tess_train_plan_phase(job, &job->config.phases.list[i], error);
        if (status == TESS_OVER_LIMIT && job->least > most) {
            most = job->least;
            why = *error;
        }
        if (status == TESS_OVER_LIMIT)
            continue;
        TESS_TRY(status);
        const tess_mem_bytes bytes = phase_bytes(job);
        if (tess_mem_total(&bytes) > tess_mem_total(&job->planned))
            job->planned = bytes;
    }
    tess_memory_plan(job->engine.memory, tess_engine_scope(&job->engine), tess_mem_total(&job->planned));
    job->least = most;
    return most ? refuse(job, &why, error) : TESS_OK;
}

void tess_train_close_phase(tess_train_job *job)
{
    tess_train_close_sums(job);
    tess_data_close(job->queue);
    job->queue = NULL;
    tess_feed_close(&job->feed);
    tess_training_destroy(job->training);
    job->training = NULL;
    tess_source_close(job->source);
    job->source = NULL;
    job->phase = NULL;
}
