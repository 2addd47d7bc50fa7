/* The reconstruct job: describe the problem, plan, run, record. */
#include "job/reconstruct/reconstruct.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "io/image.h"
#include "job/common/context.h"
#include "job/common/note.h"
#include "job/common/record.h"

/* The network that fits the image. A colour network takes for granted that edges are in all colours of a picture; in the
 * drawn one each colour has its own, so there colours are denoised one by one. */
static tess_status find_model(tess_reconstruct_job *job, tess_error *error)
{
    const int64_t channels = job->problem.channels;
    const bool published = job->settings->preset && strcmp(job->settings->preset, "deepinv") == 0,
               drawn = job->problem.synthetic && !job->problem.image;
    const char *name = job->settings->model                     ? job->settings->model
                       : channels == 3 && (published || !drawn) ? "drunet-color-small"
                                                                : "drunet-gray-small";
    const bool flat = job->problem.depth == 1,
               slices = job->settings->prior && strcmp(job->settings->prior, "slices") == 0;
    TESS_TRY(job->recipe.volume
                 ? tess_engine_volume_of(&job->engine, name, job->recipe.inflation, &job->prior.model, error)
                 : tess_engine_model_of(&job->engine, name, &job->prior.model, error));
    const tess_model_net *model = &job->prior.model->model;
    if (model->channels != channels && model->channels != 1)
        return tess_fail(error, TESS_BAD_OPTION, "the image has %lld channel(s), but the model %s takes %lld",
                         (long long)channels, name, (long long)model->channels);
    if (model->volume && flat)
        return tess_fail(error, TESS_BAD_OPTION, "the model %s takes volumes; %s is an image", name,
                         job->problem.name);
    if (model->volume && slices)
        return tess_fail(error, TESS_BAD_OPTION,
                         "--prior slices: the model %s takes volumes; leave it out, or use a 2-D one", name);
    job->prior.engine = &job->engine;
    return TESS_OK;
}

static tess_status describe(tess_reconstruct_job *job, tess_memory *memory, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    TESS_TRY(tess_problem_describe(memory, s, &job->problem, error));
    const tess_problem *p = &job->problem;
    if (p->bare_integers)
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: its integers are taken as line integrals; raw counts need \"flat\" (and \"dark\") in %s",
            p->measurement, p->name);
    const char *const read[] = {p->measurement, p->truth, p->geometry, p->image, p->flat, p->dark};
    TESS_TRY(tess_record_apart(&s->common, read, 6, error));
    TESS_TRY(tess_recipe_of(s, &job->problem, &job->recipe, error));
    TESS_TRY(tess_engine_open(&job->engine, memory, &s->common, error));
    TESS_TRY(find_model(job, error));
    const char *const weights = job->prior.model->path;
    TESS_TRY(tess_record_apart(&s->common, &weights, 1, error));
    const char *used[] = {s->output, s->side_by_side, s->save_measurement};
    for (int i = 0; i < 3; i++)
        if (used[i])
            TESS_TRY(tess_image_load_library(used[i], error));
    for (int i = 0; i < 3; i++) /* the plan tells it too, and the run before any work */
        if (used[i])
            TESS_TRY(tess_writer_check_folder(used[i], error));
    tess_process_reset_peak();
    tess_memory_reset_peak(memory);
    job->overhead = tess_process_resident();
    return TESS_OK;
}

static void close_job(tess_reconstruct_job *job)
{
    tess_device *device = job->engine.device;
    tess_writer_close(job->writer);
    tess_writer_close(job->side_writer);
    tess_prior_close(&job->prior);
    tess_data_term_close(&job->term);
    if (device) {
        tess_reconstruct_drop(job, &job->measurement);
        tess_reconstruct_drop(job, &job->solver);
        device->free(device, &job->work);
    }
    tess_block_free(&job->io);
    tess_operator_destroy(job->op);
    tess_engine_close(&job->engine);
    tess_problem_clear(&job->problem);
    tess_small_free(job->iterations);
}

/* What was done until the caller stopped it. */
static tess_status record_of_stopped(tess_reconstruct_job *job, char **record, tess_error *error)
{
    job->interrupted = true;
    job->result.iterations = job->done;
    tess_json *told = job->iterations ? tess_reconstruct_record(job, true) : NULL;
    if (!told) { /* the plan was not done */
        told = tess_record_begin("reconstruct", NULL);
        tess_json_set_bool(&told, "interrupted", true);
    }
    TESS_TRY(tess_record_end(told, record, error));
    return TESS_INTERRUPTED;
}

static tess_status reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                               bool plan_only, char **record)
{
    tess_error *error = &context->error;
    *record = NULL;
    TESS_TRY(tess_reconstruct_check(settings, error));
    tess_reconstruct_job job;
    memset(&job, 0, sizeof job);
    job.settings = settings;
    job.start = tess_clock();
    job.baseline_psnr = job.psnr = job.ssim = NAN;
    tess_status status = describe(&job, &context->memory, error);
    if (status == TESS_OK)
        status = tess_reconstruct_plan(&job, error);
    if (status == TESS_OK && !plan_only)
        status = tess_reconstruct_run(&job, error);
    if (status != TESS_OK && tess_stop_wanted(&job.engine.stop)) /* it may have met values left half done */
        status = tess_fail(error, TESS_INTERRUPTED, "stopped; no half-written output is left");
    if (status == TESS_INTERRUPTED && !plan_only)
        status = record_of_stopped(&job, record, error);
    if (status == TESS_OK)
        status = tess_record_end(tess_reconstruct_record(&job, !plan_only), record, error);
    if (status == TESS_OK && !plan_only)
        tess_reconstruct_calibrate(&job);
    close_job(&job);
    return status;
}

tess_status tess_reconstruct(tess_context *context, const tess_reconstruct_settings *settings, char **record)
{
    return reconstruct(context, settings, false, record);
}

tess_status tess_plan_reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                                  char **record)
{
    return reconstruct(context, settings, true, record);
}
