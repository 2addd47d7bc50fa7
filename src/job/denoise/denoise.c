/* The denoise job: list the files, describe them, plan each, allocate once for the largest, run, record. A file that
 * fails is reported and the others are still processed. */
#include "job/denoise/denoise.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "job/common/context.h"
#include "job/common/record.h"

static const char STOPPED[] = "stopped; no half-written output is left";

static tess_status check_settings(const tess_denoise_settings *s, bool plan_only, tess_error *error)
{
    if (!(s->input || s->input_count > 0) || !s->output)
        return tess_fail(error, TESS_BAD_OPTION, "denoise needs `input`, or `inputs`, and `output`");
    bool tile_right =
        s->tile_height == 0 || s->tile_height == TESS_TILE_WHOLE || (s->tile_height > 0 && s->tile_width > 0);
    if (!tile_right)
        return tess_fail(error, TESS_BAD_OPTION, "`tile`: use auto, whole, N or HxW");
    if (s->halo < TESS_HALO_EXACT || s->halo > 1 << 20)
        return tess_fail(error, TESS_BAD_OPTION, "`halo`: use auto, exact or a number of pixels");
    if (s->batch < 0 || s->batch > 4096)
        return tess_fail(error, TESS_BAD_OPTION, "`batch`: use auto or a number from 1 to 4096");
    TESS_TRY(tess_elsewhere_check(s->machine, s->ranks, plan_only, error));
    return tess_denoise_check_samples(s, error);
}

static void fail_file(tess_denoise_file *file, tess_status status, const tess_error *error)
{
    file->status = status;
    tess_small_free(file->error);
    file->error = tess_small_strdup(error->text);
}

/* An error of one file of several says which. */
static void name_file(const tess_denoise_file *file, tess_status status, tess_error *error)
{
    const tess_error unnamed = *error;
    if (!strstr(unnamed.text, file->input))
        tess_fail(error, status, "%s: %s", file->input, unnamed.text);
}

tess_status tess_denoise_settle(const tess_denoise_job *job, tess_denoise_file *file, tess_status status,
                                tess_error *error)
{
    if (status == TESS_OK)
        return TESS_OK;
    if (tess_stop_wanted(&job->engine.stop))
        status = tess_fail(error, TESS_INTERRUPTED, "stopped");
    bool stops = status == TESS_INTERRUPTED || status == TESS_NO_MEMORY || status == TESS_DEVICE_LOST;
    if (!stops && job->count > 1)
        name_file(file, status, error);
    fail_file(file, status, error);
    return job->folder && !stops ? TESS_OK : status;
}

bool tess_denoise_todo(const tess_denoise_file *file)
{
    return file->status == TESS_OK && !file->skipped;
}

void tess_denoise_announce(const tess_denoise_job *job, int64_t index)
{
    const tess_common *common = &job->settings->common;
    if (common->file)
        common->file(common->progress_user, index, job->count, job->files[index].name);
}

static tess_status run(tess_denoise_job *job, tess_error *error)
{
    tess_stop *stop = &job->engine.stop;
    tess_dist *dist = job->engine.dist;
    int64_t pixels = 0, left = 0;
    for (int64_t i = 0; i < job->count; i++)
        if (tess_denoise_todo(&job->files[i]))
            pixels += tess_denoise_rows(&job->files[i].info) * job->files[i].info.width;
    if (pixels == 0)
        return TESS_OK; /* no file to process: load and create nothing */
    tess_stop_begin(stop, pixels);
    tess_status status = TESS_OK;
    if (job->strips.count) {
        status = tess_denoise_run_strips(job, error);
        if (status != TESS_OK)
            return tess_denoise_settle(job, &job->files[0], status, error);
        TESS_TRY(tess_denoise_share(job, error));
        tess_stop_end(stop);
        return TESS_OK;
    }
    if (job->folder && mkdir(job->settings->output, 0777) != 0 && errno != EEXIST)
        status = tess_fail(error, TESS_IO_FAILED, "%s: cannot make this folder: %s", job->settings->output,
                           strerror(errno));
    /* A rank that fails at once would take all files from the others. */
    else if (dist->size > 1 && access(job->settings->output, W_OK | X_OK) != 0)
        status = tess_fail(error, TESS_IO_FAILED, "%s: %s", job->settings->output, strerror(errno));
    TESS_TRY(tess_dist_agree(dist, status, error));
    TESS_TRY(tess_denoise_deal(job, error));
    tess_voice_own(job->voice, true);
    status = job->engine.separate_memory && !job->volumes ? tess_denoise_run_queue(job, error)
                                                          : tess_denoise_run_host(job, error);
    tess_voice_own(job->voice, false);
    if (status != TESS_OK || tess_stop_wanted(stop))
        tess_dist_drain(dist, job->counter);
    status = tess_dist_agree(dist, status, error);
    tess_error other;
    const tess_status shared = tess_denoise_share(job, status == TESS_OK ? error : &other);
    TESS_TRY(status != TESS_OK ? status : shared);
    for (int64_t i = 0; i < job->count; i++)
        left += tess_denoise_todo(&job->files[i]) && !job->files[i].done;
    if (left)
        return tess_fail(error, TESS_INTERRUPTED, STOPPED);
    tess_stop_end(stop);
    return TESS_OK;
}

/* The first file's error becomes the job's. An option that is wrong for every file is wrong usage; one that is wrong
 * for some files fails only those. */
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

/* The job ended before all files were processed. The record still reports the finished ones. */
static tess_status broken_off(tess_denoise_job *job, bool ran, tess_status status, char **record,
                              tess_error *error)
{
    job->interrupted = tess_stop_wanted(&job->engine.stop) || status == TESS_INTERRUPTED;
    if (!job->interrupted && !(ran && job->folder))
        return status;
    for (int64_t i = 0; i < job->count; i++) {
        tess_denoise_file *file = &job->files[i];
        if (!tess_denoise_todo(file) || file->done)
            continue;
        const tess_error why = {"stopped"};
        fail_file(file, job->interrupted ? TESS_INTERRUPTED : status, &why);
    }
    if (job->listed) /* no record if there is no memory for it */
        (void)!tess_record_end(tess_denoise_record(job, true), record, NULL);
    if (!job->interrupted)
        return status;
    if (!job->listed) {
        tess_json *nothing = tess_record_begin("denoise", NULL);
        tess_json_set_bool(&nothing, "interrupted", true);
        (void)!tess_record_end(nothing, record, NULL);
        return tess_fail(error, TESS_INTERRUPTED, "stopped before the files were listed; nothing is written");
    }
    if (!job->folder)
        return tess_fail(error, TESS_INTERRUPTED, STOPPED);
    return tess_denoise_stopped(job, error);
}

/* Collective. Rank 0 plans for all: what it chooses changes results. */
static tess_status plan(tess_denoise_job *job, tess_error *error)
{
    tess_engine *engine = &job->engine;
    const uint64_t asked = job->settings->common.memory_limit;
    uint64_t limit = asked ? asked : tess_engine_free_limit(engine);
    TESS_TRY(tess_engine_share_limit(engine, &limit, error));
    if (tess_denoise_in_strips(job))
        return tess_denoise_plan_strips(job, limit, error);
    const tess_status status = engine->dist->rank == 0 ? tess_denoise_plan(job, limit, error) : TESS_OK;
    return tess_denoise_share_plan(job, status, error);
}

static tess_status finish(tess_denoise_job *job, bool ran, tess_status status, char **record,
                          tess_error *error)
{
    tess_error other;
    if (ran) {
        const tess_status shared = tess_denoise_share_figures(job, status == TESS_OK ? error : &other);
        status = status == TESS_OK ? shared : status;
    }
    for (int64_t i = 0; i < job->count && ran; i++)
        tess_denoise_note_result(job->settings, &job->files[i]);
    if (status != TESS_OK)
        status = broken_off(job, ran, status, record, error);
    else
        status = tess_record_end(tess_denoise_record(job, ran), record, error);
    if (status == TESS_OK)
        status = verdict(job, error);
    if (ran && status == TESS_OK && job->engine.dist->size == 1)
        tess_denoise_calibrate(job); /* ranks that share a host would disturb each other */
    return status;
}

static tess_status denoise(tess_context *context, const tess_denoise_settings *given, bool plan_only,
                           char **record)
{
    tess_denoise_settings settings = *given;
    tess_denoise_job job;
    tess_voice voice;
    memset(&job, 0, sizeof job);
    job.settings = &settings;
    job.voice = &voice;
    job.start = tess_clock();
    *record = NULL;
    tess_error *error = &context->error;
    TESS_TRY(tess_dist_agree(context->dist, check_settings(&settings, plan_only, error), error));
    tess_voice_begin(&voice, context->dist, &settings.common);
    tess_status status = tess_denoise_prepare(&job, context, !plan_only, error);
    if (status == TESS_OK)
        status = plan(&job, error);
    if (status == TESS_OK)
        tess_denoise_note_plan(&job);
    if (status == TESS_OK)
        status = tess_dist_agree(context->dist, tess_denoise_elsewhere(&job, error), error);
    const bool ran = status == TESS_OK && !plan_only;
    if (ran)
        status = run(&job, error);
    job.wall = tess_clock() - job.start;
    status = tess_dist_agree(context->dist, finish(&job, ran, status, record, error), error);
    tess_card_links_close(&job.links);
    tess_engine_close(&job.engine);
    tess_denoise_list_free(job.files, job.count);
    tess_small_free(job.order);
    tess_small_free(job.ranks);
    tess_voice_end(&voice);
    if (context->dist->rank != 0) {
        tess_record_free(*record);
        *record = NULL;
    }
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
