/* fill: fills the voids of an elevation map. */
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/context.h"
#include "job/common/record.h"
#include "job/common/voice.h"
#include "job/fill/fill_job.h"

void tess_fill_settings_init(tess_fill_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    tess_common_init(&settings->common);
    settings->overlap = -1;
    settings->samples = 1;
}

static void calibrate(tess_fill_job *job)
{
    const tess_plan_shape shape = {.n = 1, .h = job->tile, .w = job->tile};
    const tess_choice_run run = {"fill", tess_clock() - job->begin,
                                 job->compute_seconds - job->prepare_seconds, job->planned_seconds,
                                 job->calibrated};
    tess_choice_learn(&job->engine, &run);
    if (!job->calibrated)
        tess_choice_measure_net(&job->engine, job->step, shape, job->planned_total, run.wall);
}

/* Collective: of all ranks. */
static tess_status share_figures(tess_fill_job *job, tess_error *error)
{
    job->figures = (tess_engine_figures){.resident = tess_process_peak(),
                                         .overhead = job->overhead,
                                         .seconds = job->compute_seconds,
                                         .units = job->tile_steps,
                                         .operations = job->operations};
    tess_memory_peak(job->engine.memory, tess_engine_scope(&job->engine), &job->figures.peak);
    return tess_engine_share_figures(&job->engine, &job->figures, error);
}

/* On rank 0, also of a run that was stopped. */
static tess_status end_record(const tess_fill_job *job, bool ran, tess_status status, char **record,
                              tess_error *error)
{
    tess_error ignored;
    if (job->engine.dist->rank > 0 || (status != TESS_OK && status != TESS_INTERRUPTED))
        return status;
    tess_json *told = tess_fill_record(job, ran);
    if (status == TESS_INTERRUPTED)
        tess_json_set_bool(&told, "interrupted", true);
    const tess_status written = tess_record_end(told, record, status == TESS_OK ? error : &ignored);
    return status == TESS_OK ? written : status;
}

static tess_status run(tess_fill_job *job, tess_context *context, bool plan_only, char **record)
{
    tess_error *error = &context->error, other;
    tess_dist *dist = context->dist;
    TESS_TRY(tess_fill_open(job, context, plan_only, error));
    tess_status status = TESS_OK;
    if (!plan_only) {
        tess_process_reset_peak();
        tess_memory_reset_peak(&context->memory);
        job->overhead = tess_process_resident();
        status = tess_fill_run(job, error);
        const tess_status shared = share_figures(job, status == TESS_OK ? error : &other);
        status = status == TESS_OK ? shared : status;
    }
    status = tess_dist_agree(dist, end_record(job, !plan_only, status, record, error), error);
    if (status == TESS_OK && !plan_only && job->list.count > job->resumed && dist->size == 1)
        calibrate(job); /* ranks that share a host would disturb each other */
    return status;
}

static tess_status fill(tess_context *context, const tess_fill_settings *given, bool plan_only, char **record)
{
    tess_fill_settings settings = *given;
    tess_voice voice;
    *record = NULL;
    tess_status status;
    tess_fill_job *job = tess_context_job(context, sizeof *job, &status);
    if (!job)
        return status;
    tess_voice_begin(&voice, context->dist, &settings.common);
    job->settings = &settings;
    job->begin = tess_clock();
    status = run(job, context, plan_only, record);
    tess_fill_close(job);
    tess_small_free(job);
    tess_voice_end(&voice);
    return status;
}

tess_status tess_fill(tess_context *context, const tess_fill_settings *settings, char **record)
{
    return fill(context, settings, false, record);
}

tess_status tess_plan_fill(tess_context *context, const tess_fill_settings *settings, char **record)
{
    return fill(context, settings, true, record);
}
