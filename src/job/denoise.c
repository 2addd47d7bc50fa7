/* The denoise job: list the files, describe them, plan each, allocate once for the largest, run, record. A
 * file that fails is reported and the others are done. */
#include "job/denoise.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/context.h"
#include "job/record.h"

static const double CALIBRATION_SECONDS = 3;

static tess_status check_settings(const tess_denoise_settings *s, tess_error *error)
{
    if (!s->input || !s->output)
        return tess_fail(error, TESS_BAD_OPTION, "denoise needs an input and an output");
    if (s->sigma > 10 || isnan(s->sigma))
        return tess_fail(error, TESS_BAD_OPTION,
                         "--sigma %g: is on the [0,1] scale; write 25/255 for 25 of 255", s->sigma);
    if (!(s->add_noise >= 0) || s->add_noise > 10)
        return tess_fail(error, TESS_BAD_OPTION, "--add-noise %g: use 0 or more, on the [0,1] scale",
                         s->add_noise);
    bool tile_right =
        s->tile_height == 0 || s->tile_height == TESS_TILE_WHOLE || (s->tile_height > 0 && s->tile_width > 0);
    if (!tile_right)
        return tess_fail(error, TESS_BAD_OPTION, "--tile: use auto, whole, N or HxW");
    if (s->halo < TESS_HALO_EXACT || s->halo > 1 << 20)
        return tess_fail(error, TESS_BAD_OPTION, "--halo: use auto, exact or a number of pixels");
    if (s->batch < 0 || s->batch > 4096)
        return tess_fail(error, TESS_BAD_OPTION, "--batch: use auto or a number from 1 to 4096");
    return TESS_OK;
}

static void fail_file(tess_denoise_file *file, tess_status status, const tess_error *error)
{
    file->status = status;
    tess_small_free(file->error);
    file->error = tess_small_strdup(error->text);
}

/* In a folder a bad file is its own affair; a single one is the job's. */
static tess_status settle(const tess_denoise_job *job, tess_denoise_file *file, tess_status status,
                          tess_error *error)
{
    if (status == TESS_OK)
        return TESS_OK;
    fail_file(file, status, error);
    bool stops = status == TESS_INTERRUPTED || status == TESS_NO_MEMORY || status == TESS_DEVICE_LOST;
    return job->folder && !stops ? TESS_OK : status;
}

/* Headers, models and libraries: after this nothing new is loaded. */
static tess_status describe(tess_denoise_job *job, tess_error *error)
{
    const tess_denoise_settings *s = job->settings;
    TESS_TRY(tess_engine_open(&job->engine, &s->common, error));
    TESS_TRY(tess_denoise_list(s, &job->files, &job->count, &job->folder, error));
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        const char *used[] = {file->input, file->output, file->truth};
        tess_status status = TESS_OK;
        for (int k = 0; k < 3 && status == TESS_OK; k++)
            if (used[k])
                status = tess_image_load_library(used[k], error);
        if (status == TESS_OK)
            status = tess_denoise_describe(&job->engine, s, file, error);
        TESS_TRY(settle(job, file, status, error));
    }
    tess_process_reset_peak();
    tess_mem_reset_peak();
    job->overhead = tess_process_resident();
    return TESS_OK;
}

/* Plans every file within what the weights of the other models leave. Files are done one after another, so
 * the job's peak is that of its largest file. */
static tess_status plan(tess_denoise_job *job, tess_error *error)
{
    uint64_t weights = 0;
    for (int m = 0; m < job->engine.model_count; m++)
        weights += tess_block_granted(tess_bound_weight_bytes(job->engine.models[m].bound));
    job->planned.by[TESS_MEM_WEIGHTS] = job->planned_total = weights;
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (file->status != TESS_OK)
            continue;
        uint64_t others = weights - tess_block_granted(tess_bound_weight_bytes(file->model->bound));
        file->wish.limit = file->wish.limit > others ? file->wish.limit - others : 0;
        tess_status status = tess_denoise_choose(file->model->bound, &file->model->model, job->engine.rates,
                                                 &file->wish, &file->choice, error);
        TESS_TRY(settle(job, file, status, error));
        if (status != TESS_OK)
            continue;
        uint64_t total = tess_mem_total(&file->choice.bytes) + others;
        job->planned_total = total > job->planned_total ? total : job->planned_total;
        for (int c = TESS_MEM_ACTIVATIONS; c < TESS_MEM_CATEGORIES; c++)
            if (file->choice.bytes.by[c] > job->planned.by[c])
                job->planned.by[c] = file->choice.bytes.by[c];
        job->planned_seconds += file->choice.seconds;
    }
    return TESS_OK;
}

static void free_blocks(tess_denoise_job *job)
{
    tess_device *device = job->engine.device;
    if (!device)
        return;
    device->free(device, &job->blocks.arena);
    device->free(device, &job->blocks.workspace);
    device->host_free(device, &job->blocks.io);
}

/* Blocks of just the file's sizes; images of one size keep them. */
static tess_status fit_blocks(tess_denoise_job *job, const tess_denoise_choice *choice, tess_error *error)
{
    tess_device *device = job->engine.device;
    tess_denoise_blocks *b = &job->blocks;
    if (b->arena.bytes == tess_block_granted(choice->arena_bytes) &&
        b->workspace.bytes == tess_block_granted(choice->workspace_bytes) &&
        b->io.bytes == tess_block_granted(choice->io_block))
        return TESS_OK;
    free_blocks(job);
    TESS_TRY(device->alloc(device, &b->arena, TESS_MEM_ACTIVATIONS, choice->arena_bytes, error));
    TESS_TRY(device->alloc(device, &b->workspace, TESS_MEM_WORKSPACE, choice->workspace_bytes, error));
    return device->host_alloc(device, &b->io, TESS_MEM_IO, choice->io_block, error);
}

static tess_status run(tess_denoise_job *job, tess_error *error)
{
    tess_denoise_progress progress = {.common = &job->settings->common, .start = tess_clock()};
    for (int64_t i = 0; i < job->count; i++)
        if (job->files[i].status == TESS_OK)
            progress.total += job->files[i].info.height * job->files[i].info.width;
    if (progress.total == 0)
        return TESS_OK; /* no file is left to do: nothing is loaded, nothing is made */
    if (job->folder && mkdir(job->settings->output, 0777) != 0 && errno != EEXIST)
        return tess_fail(error, TESS_IO_FAILED, "%s: cannot make this folder: %s", job->settings->output,
                         strerror(errno));
    TESS_TRY(tess_engine_load(&job->engine, error));
    job->loaded = tess_process_resident();
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (file->status != TESS_OK)
            continue;
        tess_status status = fit_blocks(job, &file->choice, error);
        if (status == TESS_OK)
            status = tess_denoise_image(&job->engine, job->settings, file, &job->blocks, &progress, error);
        TESS_TRY(settle(job, file, status, error));
    }
    return TESS_OK;
}

/* The first file's trouble stands for the job's. An option that is wrong for every file is wrong usage; one
 * that is wrong for some is those files' trouble. */
static tess_status verdict(const tess_denoise_job *job, tess_error *error)
{
    int64_t failed = 0, refused = 0;
    const tess_denoise_file *first = NULL;
    for (int64_t i = 0; i < job->count; i++)
        if (job->files[i].status != TESS_OK) {
            first = first ? first : &job->files[i];
            refused += job->files[i].status == TESS_BAD_OPTION;
            failed++;
        }
    if (!failed)
        return TESS_OK;
    tess_status status =
        first->status == TESS_BAD_OPTION && refused < job->count ? TESS_BAD_INPUT : first->status;
    return tess_fail(error, status, "%lld of %lld files failed; the first: %s", (long long)failed,
                     (long long)job->count, first->error ? first->error : "no memory");
}

static void calibrate(tess_denoise_job *job)
{
    const tess_denoise_file *file = tess_denoise_largest(job);
    if (file->status != TESS_OK || !file->model)
        return;
    int64_t grid = tess_net_grid(file->model->model.net);
    tess_net_plan *plan = NULL;
    /* Within what the job itself was promised: its blocks are free again, the weights are not. */
    const tess_rates_budget budget = {CALIBRATION_SECONDS,
                                      job->planned_total - job->planned.by[TESS_MEM_WEIGHTS]};
    tess_status status =
        tess_net_plan_create(file->model->bound, (tess_plan_shape){1, grid, grid, TESS_INFER}, &plan, NULL);
    if (status == TESS_OK)
        status = tess_rates_measure(job->engine.rates, plan, budget, NULL);
    (void)status; /* the job is done; without rates the next plan's seconds are only rougher */
    tess_net_plan_destroy(plan);
}

static tess_status denoise(tess_context *context, const tess_denoise_settings *settings, bool plan_only,
                           char **record)
{
    tess_denoise_job job;
    memset(&job, 0, sizeof job);
    job.settings = settings;
    job.start = tess_clock();
    *record = NULL;
    tess_error *error = &context->error;
    tess_status status = check_settings(settings, error);
    if (status == TESS_OK)
        status = describe(&job, error);
    if (status == TESS_OK)
        status = plan(&job, error);
    bool ran = status == TESS_OK && !plan_only;
    if (ran)
        status = run(&job, error);
    if (status == TESS_OK) {
        status = tess_record_end(tess_denoise_record(&job, ran), record, error);
    }
    if (status == TESS_OK)
        status = verdict(&job, error);
    free_blocks(&job);
    if (ran && status == TESS_OK)
        calibrate(&job);
    tess_engine_close(&job.engine);
    tess_denoise_list_free(job.files, job.count);
    return status;
}

tess_status tess_denoise(tess_context *context, const tess_denoise_settings *settings, char **record)
{
    return denoise(context, settings, false, record);
}

tess_status tess_plan_denoise(tess_context *context, const tess_denoise_settings *settings, char **record)
{
    return denoise(context, settings, true, record);
}
