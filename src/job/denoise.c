/* The denoise job: list the files, describe them, plan each, allocate once for the largest, run, record. A
 * file that fails is reported and the others are done. */
#include "job/denoise.h"

#include <math.h>
#include <string.h>

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
static tess_status describe(tess_denoise_job *job, bool make_folders, tess_error *error)
{
    const tess_denoise_settings *s = job->settings;
    TESS_TRY(tess_denoise_list(s, make_folders, &job->files, &job->count, &job->folder, error));
    TESS_TRY(tess_engine_open(&job->engine, &s->common, error));
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

/* Adds what one file needs to the job's blocks, which are allocated once: the largest of each. */
static void widen(tess_denoise_job *job, const tess_denoise_file *file, uint64_t *io_block, uint64_t *held)
{
    for (int c = TESS_MEM_ACTIVATIONS; c < TESS_MEM_IO; c++)
        if (file->choice.bytes.by[c] > job->planned.by[c])
            job->planned.by[c] = file->choice.bytes.by[c];
    uint64_t block = tess_block_granted(file->choice.io_block);
    *io_block = block > *io_block ? block : *io_block;
    *held = file->wish.held_bytes > *held ? file->wish.held_bytes : *held;
    job->planned_seconds += file->choice.seconds;
}

/* Plans every file with `cut` bytes less than the limit. */
static tess_status plan_files(tess_denoise_job *job, uint64_t cut, tess_error *error)
{
    uint64_t io_block = 0, held = 0, weights = 0;
    for (int m = 0; m < job->engine.model_count; m++)
        weights += tess_block_granted(tess_bound_weight_bytes(job->engine.models[m].bound));
    memset(&job->planned, 0, sizeof job->planned);
    job->planned.by[TESS_MEM_WEIGHTS] = weights;
    job->planned_seconds = 0;
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (file->status != TESS_OK)
            continue;
        tess_denoise_wish wish = file->wish;
        uint64_t others = weights - tess_block_granted(tess_bound_weight_bytes(file->model->bound));
        wish.limit = wish.limit > cut + others ? wish.limit - cut - others : 0;
        tess_status status = tess_denoise_choose(file->model->bound, &file->model->model, job->engine.rates,
                                                 &wish, &file->choice, error);
        TESS_TRY(settle(job, file, status, error));
        if (status == TESS_OK)
            widen(job, file, &io_block, &held);
    }
    job->planned.by[TESS_MEM_IO] = io_block + held;
    job->blocks.arena.bytes = job->planned.by[TESS_MEM_ACTIVATIONS];
    job->blocks.workspace.bytes = job->planned.by[TESS_MEM_WORKSPACE];
    job->blocks.io.bytes = io_block;
    return TESS_OK;
}

/* Files that fit one by one may not fit together, as each category takes its largest: then all are planned
 * again with less. */
static tess_status plan(tess_denoise_job *job, tess_error *error)
{
    const uint64_t limit = job->settings->common.memory_limit;
    uint64_t cut = 0;
    for (int attempt = 0; attempt < 8; attempt++) {
        TESS_TRY(plan_files(job, cut, error));
        uint64_t total = tess_mem_total(&job->planned);
        if (limit == 0 || total <= limit)
            return TESS_OK;
        cut += total - limit;
    }
    return tess_fail(error, TESS_OVER_LIMIT,
                     "--memory %.0fM is too little for these files together; give %.0fM",
                     (double)limit / (1 << 20), ceil((double)tess_mem_total(&job->planned) / (1 << 20)));
}

static tess_status allocate(tess_denoise_job *job, tess_error *error)
{
    tess_device *device = job->engine.device;
    tess_denoise_blocks *b = &job->blocks;
    size_t arena = b->arena.bytes, workspace = b->workspace.bytes, io = b->io.bytes;
    memset(b, 0, sizeof *b);
    TESS_TRY(tess_engine_load(&job->engine, error));
    job->loaded = tess_process_resident();
    TESS_TRY(device->alloc(device, &b->arena, TESS_MEM_ACTIVATIONS, arena, error));
    TESS_TRY(device->alloc(device, &b->workspace, TESS_MEM_WORKSPACE, workspace, error));
    return device->host_alloc(device, &b->io, TESS_MEM_IO, io, error);
}

static tess_status run(tess_denoise_job *job, tess_error *error)
{
    TESS_TRY(allocate(job, error));
    tess_denoise_progress progress = {.common = &job->settings->common, .start = tess_clock()};
    for (int64_t i = 0; i < job->count; i++)
        if (job->files[i].status == TESS_OK)
            progress.total += job->files[i].info.height * job->files[i].info.width;
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (file->status != TESS_OK)
            continue;
        tess_status status =
            tess_denoise_image(&job->engine, job->settings, file, &job->blocks, &progress, error);
        TESS_TRY(settle(job, file, status, error));
    }
    return TESS_OK;
}

/* The first file's trouble stands for the job's. */
static tess_status verdict(const tess_denoise_job *job, tess_error *error)
{
    int64_t failed = 0;
    const tess_denoise_file *first = NULL;
    for (int64_t i = 0; i < job->count; i++)
        if (job->files[i].status != TESS_OK) {
            first = first ? first : &job->files[i];
            failed++;
        }
    if (!failed)
        return TESS_OK;
    tess_status status =
        first->status == TESS_BAD_OPTION ? TESS_BAD_INPUT : first->status; /* the call was right */
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
                                      tess_mem_total(&job->planned) - job->planned.by[TESS_MEM_WEIGHTS]};
    tess_status status =
        tess_net_plan_create(file->model->bound, (tess_plan_shape){1, grid, grid, TESS_INFER}, &plan, NULL);
    if (status == TESS_OK)
        status = tess_rates_measure(job->engine.rates, plan, budget, NULL);
    (void)status; /* the job is done; without rates the next plan's seconds are only rougher */
    tess_net_plan_destroy(plan);
}

static void close_job(tess_denoise_job *job)
{
    tess_device *device = job->engine.device;
    if (device && job->blocks.arena.data)
        device->free(device, &job->blocks.arena);
    if (device && job->blocks.workspace.data)
        device->free(device, &job->blocks.workspace);
    if (device && job->blocks.io.data)
        device->host_free(device, &job->blocks.io);
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
        status = describe(&job, !plan_only, error);
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
    close_job(&job);
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
