/* detect_run.c: phase 1, then the scores of every image. Scores that are read again (for quantiles, decisions and metrics) are
 * also kept in a temporary file, so that memory does not depend on the size of the cubes. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/process.h"
#include "job/common/note.h"
#include "job/detect/detect_job.h"
#include "model/spectral/state_file.h"
#include "train/statistics/decide.h"

bool tess_detect_rates(const tess_detect_job *job)
{
    return job->settings->truth != NULL;
}

int64_t tess_detect_offset(const tess_detect_job *job, int64_t image)
{
    int64_t sum = 0;
    for (int64_t i = 0; i < image; i++)
        sum += job->input.image[i].height * job->input.image[i].width;
    return sum;
}

tess_status tess_detect_spool_read(tess_detect_job *job, int64_t first, int64_t count, float *scores,
                                   tess_error *error)
{
    if (fseeko(job->spool, (off_t)(first * (int64_t)sizeof *scores), SEEK_SET) != 0 ||
        fread(scores, sizeof *scores, (size_t)count, job->spool) != (size_t)count)
        return tess_fail(error, TESS_IO_FAILED, "the temporary file beside %s cannot be read: %s",
                         job->settings->output, strerror(errno));
    return TESS_OK;
}

tess_status tess_detect_truth_open(tess_detect_job *job, int64_t file, tess_cube_mask **out,
                                   tess_error *error)
{
    const char *truth = job->settings->truth;
    const tess_cube_entry *entry = &job->input.list.entries[file];
    tess_cube_settings settings = job->input.settings;
    *out = NULL;
    if (!truth)
        return TESS_OK;
    settings.memory = &job->truth_memory;
    if (!tess_detect_is_folder(truth) && job->input.list.count > 1)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`truth` %s: is one mask, and there are %lld cubes; give the folder of their masks",
                         truth, (long long)job->input.list.count);
    if (!tess_detect_is_folder(truth))
        return tess_cube_mask_open(truth, &entry->info, &settings, out, error);
    const char *slash = strrchr(entry->path, '/'), *name = slash ? slash + 1 : entry->path;
    const size_t bytes = strlen(truth) + strlen(name) + 2;
    char *beside = tess_small_alloc(bytes, 1), *path = NULL;
    if (beside) {
        snprintf(beside, bytes, "%s/%s", truth, name);
        path = tess_cube_mask_beside(beside);
    }
    tess_status status =
        path ? tess_cube_mask_open(path, &entry->info, &settings, out, error)
             : tess_fail(error, TESS_BAD_INPUT, "%s has no mask of %s (a name that ends in _mask)", truth,
                         entry->path);
    tess_small_free(beside);
    tess_small_free(path);
    return status;
}

/* Where the scores of the images go, file by file. */
typedef struct sink {
    tess_detect_job *job;
    tess_cube_scores *writer;
    tess_cube_mask *truth;
} sink;

static tess_status begin_file(sink *s, int64_t image, tess_error *error)
{
    tess_detect_job *job = s->job;
    const int64_t file = job->input.file[image];
    tess_cube *cube;
    char *path = tess_detect_target(job, file);
    tess_status status = path ? tess_pixel_cubes_at(&job->input, image, &cube, error)
                              : tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
    if (status == TESS_OK)
        status = tess_detect_truth_open(job, file, &s->truth, error);
    if (status == TESS_OK)
        status = tess_cube_scores_create(cube, job->input.list.entries[file].info.count > 1 ? -1 : 0, path,
                                         &s->writer, error);
    tess_small_free(path);
    return status;
}

static tess_status end_file(sink *s, tess_error *error)
{
    TESS_TRY(tess_stop_check(&s->job->engine.stop, error));
    TESS_TRY(tess_cube_scores_commit(s->writer, error));
    tess_cube_scores_close(s->writer);
    tess_cube_mask_close(s->truth);
    s->writer = NULL;
    s->truth = NULL;
    return TESS_OK;
}

static tess_status keep_scores(sink *s, int64_t image, int64_t first_row, int64_t rows, const float *scores,
                               tess_error *error)
{
    tess_detect_job *job = s->job;
    const int64_t width = job->input.image[image].width, pixels = rows * width;
    for (int64_t i = 0; i < pixels; i++)
        job->without_score += scores[i] != scores[i];
    job->pixels += pixels;
    TESS_TRY(tess_cube_scores_rows(s->writer, rows, scores, error));
    if (job->spool && fwrite(scores, sizeof *scores, (size_t)pixels, job->spool) != (size_t)pixels)
        return tess_fail(error, TESS_IO_FAILED, "the temporary file beside %s cannot be written: %s",
                         job->settings->output, strerror(errno));
    uint8_t *marks = (uint8_t *)((float *)job->piece.data + job->piece_pixels);
    const int64_t step = tess_max_i64(1, job->piece_pixels / width);
    for (int64_t row = 0; s->truth && row < rows; row += step) {
        const int64_t count = tess_min_i64(step, rows - row);
        TESS_TRY(
            tess_cube_mask_read(s->truth, job->input.place[image], first_row + row, count, marks, error));
        TESS_TRY(tess_curve_collect(&job->curve, scores + row * width, marks, count * width, error));
    }
    return TESS_OK;
}

static tess_status take_rows(sink *s, int64_t image, int64_t first_row, int64_t rows, const float *scores,
                             tess_error *error)
{
    const tess_pixel_cubes *input = &s->job->input;
    const int64_t images = input->list.entries[input->file[image]].info.count;
    if (first_row == 0 && input->place[image] == 0)
        TESS_TRY(begin_file(s, image, error));
    TESS_TRY(keep_scores(s, image, first_row, rows, scores, error));
    const bool last = first_row + rows == input->image[image].height && input->place[image] + 1 == images;
    return last ? end_file(s, error) : TESS_OK;
}

static tess_status take(void *user, int64_t image, int64_t first_row, int64_t rows, const float *scores,
                        tess_error *error)
{
    sink *s = user;
    const double start = tess_clock();
    const tess_status status = take_rows(s, image, first_row, rows, scores, error);
    s->job->sink_seconds += tess_clock() - start;
    return status;
}

/* Collective: the scores of all images come to rank 0. */
static tess_status score_all(tess_detect_job *job, tess_error *error)
{
    sink s = {.job = job};
    const tess_status status =
        tess_statistics_score(job->statistics, &job->input.set, 0, job->input.set.images, take, &s, error);
    tess_cube_scores_close(s.writer);
    tess_cube_mask_close(s.truth);
    return status;
}

static tess_status open_spool(tess_detect_job *job, tess_error *error)
{
    if (!job->decides && !tess_detect_rates(job))
        return TESS_OK;
    char *path = tess_detect_target(job, 0);
    tess_status status = path ? tess_temp_create(path, &job->spool_temp, error)
                              : tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
    if (status != TESS_OK && path)
        status = tess_fail_prefix(error, status, path);
    tess_small_free(path);
    if (status == TESS_OK && !(job->spool = fopen(tess_temp_path(job->spool_temp), "w+b")))
        status = tess_temp_fail(errno, error);
    return status;
}

static tess_status allocate(tess_detect_job *job, tess_error *error)
{
    tess_memory *memory = job->engine.memory;
    size_t samples = 0;
    for (int64_t f = 0; job->settings->overlay && f < job->input.list.count; f++)
        samples = tess_cube_bytes(&job->input.list.entries[f].info, 1); /* of one image */
    TESS_TRY(
        tess_block_alloc(memory, &job->piece, TESS_MEM_HOST, (size_t)job->piece_pixels * 6 + samples, error));
    if (job->decides)
        TESS_TRY(tess_block_alloc(memory, &job->decider, TESS_MEM_HOST, tess_decide_bytes(), error));
    return tess_statistics_create(job->fits ? &job->fit_stage : &job->stage, &job->all, &job->state,
                                  &job->statistics, error);
}

/* The parameters are in the host's memory: another device goes on with them. */
static tess_status change_device(tess_detect_job *job, tess_error *error)
{
    if (!job->fits || job->fit_stage.device == job->stage.device)
        return TESS_OK;
    job->fitted = tess_statistics_facts(job->statistics);
    tess_statistics_destroy(job->statistics);
    job->statistics = NULL;
    return tess_statistics_create(&job->stage, &job->all, &job->state, &job->statistics, error);
}

/* A network that nobody trained. */
static void note_random(const tess_detect_job *job)
{
    const int node = tess_pipeline_kind(&job->plan->pipeline, TESS_NODE_MLP);
    const char *pipeline = job->settings->pipeline;
    if (node >= 0 && !tess_detect_has_suffix(pipeline, ".safetensors"))
        tess_note(&job->settings->common, TESS_NOTE_WARNING,
                  "node '%s' (mlp) has its first values, which are random; `tessera train` trains it",
                  job->plan->pipeline.nodes[node].name);
}

/* What has to be there before anything is computed. */
static tess_status prepare(tess_detect_job *job, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    const bool first = job->engine.dist->rank == 0;
    if (first && tess_detect_is_folder(s->input) && !tess_detect_is_folder(s->output) &&
        mkdir(s->output, 0777) != 0)
        return tess_fail(error, TESS_IO_FAILED, "%s: the folder for the scores cannot be made: %s", s->output,
                         strerror(errno));
    TESS_TRY(allocate(job, error));
    return first ? open_spool(job, error) : TESS_OK;
}

/* What follows from all scores, on rank 0. */
static tess_status conclude(tess_detect_job *job, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    if (job->engine.dist->rank > 0)
        return TESS_OK;
    if (job->spool)
        TESS_TRY(tess_detect_decide(job, error));
    if (s->detections)
        TESS_TRY(tess_detect_list(job, error));
    return s->overlay ? tess_detect_overlay(job, error) : TESS_OK;
}

/* Collective: of all ranks. */
static tess_status share_figures(tess_detect_job *job, tess_error *error)
{
    job->figures = (tess_engine_figures){.resident = tess_process_peak(),
                                         .overhead = job->overhead,
                                         .units = job->fitted.bytes_read +
                                                  tess_statistics_facts(job->statistics).bytes_read};
    tess_memory_peak(job->engine.memory, tess_engine_scope(&job->engine), &job->figures.peak);
    return tess_engine_share_figures(&job->engine, &job->figures, error);
}

tess_status tess_detect_run(tess_detect_job *job, tess_error *error)
{
    const tess_detect_settings *s = job->settings;
    tess_dist *dist = job->engine.dist;
    const tess_pixel_cubes *fitted = job->fits_other ? &job->other : &job->input;
    const int64_t fit_pixels = job->fits ? fitted->list.pixels * tess_statistics_fit_readings(job->plan) : 0;
    TESS_TRY(tess_dist_agree(dist, prepare(job, error), error));
    tess_stop_begin(&job->engine.stop,
                    fit_pixels + job->input.list.pixels * tess_statistics_score_readings(job->plan));
    double start = tess_clock();
    note_random(job);
    if (job->fits)
        TESS_TRY(tess_statistics_fit(job->statistics, &fitted->set, error));
    tess_status status = TESS_OK;
    if (s->save && dist->rank == 0)
        status = tess_spectral_save(job->engine.memory, s->save, &job->state, NULL, 0, error);
    if (status == TESS_OK)
        status = change_device(job, error);
    TESS_TRY(tess_dist_agree(dist, status, error));
    job->fit_seconds = tess_clock() - start;
    start = tess_clock();
    TESS_TRY(score_all(job, error));
    job->score_seconds = tess_clock() - start;
    start = tess_clock();
    TESS_TRY(tess_dist_agree(dist, conclude(job, error), error));
    job->decide_seconds = tess_clock() - start;
    TESS_TRY(share_figures(job, error));
    tess_stop_end(&job->engine.stop);
    return TESS_OK;
}
