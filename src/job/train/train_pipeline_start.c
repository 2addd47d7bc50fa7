/* Phase 1 of a run that trains a pipeline, and the first values of the network. What phase 1 fitted is kept beside the checkpoints: a
 * resumed run reads it, so that its pixels are the same bits. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "job/train/train_job.h"
#include "job/train/train_pipeline.h"
#include "model/spectral/state_file.h"
#include "train/checksum.h"

static const char start_name[] = "fitted.safetensors", cubes_key[] = "cubes";

/* Pixels are no steps: the run's progress does not count them. */
static bool go_on(void *user, int64_t done, int64_t total, double seconds)
{
    (void)done, (void)total, (void)seconds;
    return !tess_stop_poll(&((tess_train_job *)user)->stop);
}

void tess_spectral_watch(tess_train_job *job)
{
    tess_stop_init(&job->spectral->stop, go_on, job);
}

tess_pixel_stage_settings tess_spectral_stage(tess_train_job *job)
{
    return (tess_pixel_stage_settings){.device = job->engine.device,
                                       .memory = job->engine.memory,
                                       .pool = job->engine.host,
                                       .stop = &job->spectral->stop};
}

size_t tess_spectral_path_values(const tess_train_spectral *s)
{
    return tess_path_values(s->plan, tess_spectral_network_at(s->plan));
}

/* Cubes are drawn by their place in the list: names and sizes must be the same when a run is resumed. */
static void sum_cubes(const tess_train_spectral *s, char text[24])
{
    tess_xxh64 sum;
    tess_xxh64_begin(&sum);
    for (int64_t f = 0; f < s->cubes.list.count; f++) {
        const tess_cube_entry *entry = &s->cubes.list.entries[f];
        const char *slash = strrchr(entry->path, '/'), *name = slash ? slash + 1 : entry->path;
        const int64_t sizes[] = {entry->info.count, entry->info.height, entry->info.width, entry->info.bands,
                                 entry->info.dtype};
        tess_xxh64_add(&sum, name, strlen(name) + 1);
        tess_xxh64_add(&sum, sizes, sizeof sizes);
    }
    snprintf(text, 24, "%016llx", (unsigned long long)tess_xxh64_end(&sum));
}

static char *start_path(const tess_train_job *job)
{
    const char *folder = job->config.checkpoint.folder.path;
    const size_t size = strlen(folder) + sizeof start_name + 1;
    char *path = tess_small_alloc(size, 1);
    if (path)
        snprintf(path, size, "%s/%s", folder, start_name);
    return path;
}

/* Phase 1, and a file of what it fitted, which a resumed run reads. */
static tess_status fit(tess_train_job *job, const char *path, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    const tess_pixel_stage_settings stage = tess_spectral_stage(job);
    const double begin = tess_clock();
    char sum[24];
    const tess_spectral_note note = {cubes_key, sum};
    tess_statistics *statistics = NULL;
    if (!s->fitted) {
        tess_status status = tess_statistics_create(&stage, &s->cubes.set, &s->state, &statistics, error);
        if (status == TESS_OK)
            status = tess_statistics_fit(statistics, &s->cubes.set, error);
        tess_statistics_destroy(statistics);
        tess_pixel_cubes_rest(&s->cubes);
        TESS_TRY(status);
    }
    s->statistics_seconds = tess_clock() - begin;
    sum_cubes(s, sum);
    return tess_spectral_save(job->engine.memory, path, &s->state, &note, 1, error);
}

static tess_status read_start(tess_train_job *job, const char *path, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    tess_spectral_plan *plan = NULL;
    tess_spectral_state state;
    tess_weights *weights = NULL;
    char sum[24];
    sum_cubes(s, sum);
    TESS_TRY(tess_weights_open(path, &weights, error));
    const char *before = tess_weights_metadata(weights, cubes_key);
    const bool same = before && strcmp(before, sum) == 0;
    tess_weights_close(weights);
    if (!same)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: the cubes are not those of the run's start; set them back, or start a new run with another "
            "checkpoint.folder",
            job->config.data.folders.list[0].path);
    TESS_TRY(tess_spectral_load(job->engine.memory, path, &plan, &state, error));
    tess_status status = TESS_OK;
    const size_t bytes = tess_spectral_state_bytes(plan);
    if (bytes == tess_spectral_state_bytes(s->plan))
        memcpy(s->state.block.data, state.block.data, bytes);
    else
        status = tess_fail(error, TESS_BAD_INPUT, "%s: is of another pipeline", path);
    tess_spectral_state_free(&state);
    tess_spectral_plan_free(plan);
    return status;
}

size_t tess_spectral_condensed_bytes(const tess_train_job *job)
{
    const tess_train_spectral *s = job->spectral;
    const int channels = (int)job->model.channels;
    return s->condenses ? (size_t)s->cubes.set.images * (size_t)tess_condensed_pixels(channels) *
                              (size_t)channels * sizeof(float)
                        : 0;
}

static tess_status condense(tess_train_job *job, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    const tess_pixel_stage_settings stage = tess_spectral_stage(job);
    if (!s->condenses)
        return TESS_OK;
    TESS_TRY(tess_block_alloc(job->engine.memory, &s->condensed, TESS_MEM_HOST,
                              tess_spectral_condensed_bytes(job), error));
    const tess_status status = tess_condense(&stage, &s->cubes.set, &s->path, s->condensed.data, error);
    tess_pixel_cubes_rest(&s->cubes);
    return status;
}

tess_status tess_train_begin_pipeline(tess_train_job *job, tess_error *error)
{
    tess_train_spectral *s = job->spectral;
    double *work = s->work.data;
    char *path = start_path(job);
    if (!path)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
    const tess_status status = job->settings->resume ? read_start(job, path, error) : fit(job, path, error);
    tess_small_free(path);
    TESS_TRY(status);
    tess_path_make(&s->state, tess_spectral_network_at(s->plan), work, work + tess_spectral_path_values(s),
                   &s->path);
    return condense(job, error);
}

tess_status tess_train_first_pipeline_values(tess_train_job *job, float *trained, float *running,
                                             tess_error *error)
{
    const tess_parameters *parameters = tess_training_parameters(job->training);
    double *work = (double *)job->spectral->work.data + tess_spectral_path_values(job->spectral);
    for (int i = 0; i < parameters->count; i++) {
        const tess_parameter *one = &parameters->list[i];
        TESS_TRY(tess_spectral_get(&job->spectral->state, one,
                                   (one->running ? running : trained) + one->offset, work, error));
    }
    return TESS_OK;
}
