/* detect: scores of anomalies in hyperspectral cubes. */
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/context.h"
#include "job/common/record.h"
#include "job/common/voice.h"
#include "job/detect/detect_job.h"

void tess_detect_settings_init(tess_detect_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    tess_common_init(&settings->common);
}

/* On all ranks; only rank 0 keeps its record. */
static tess_status run(tess_detect_job *job, tess_context *context, bool plan_only, char **record)
{
    tess_error *error = &context->error;
    tess_dist *dist = context->dist;
    TESS_TRY(tess_detect_open(job, context, error));
    if (!plan_only) {
        tess_process_reset_peak();
        tess_memory_reset_peak(&context->memory);
        job->overhead = tess_process_resident();
        TESS_TRY(tess_detect_run(job, error));
    }
    tess_status status = TESS_OK;
    if (dist->rank == 0)
        status = tess_record_end(tess_detect_record(job, !plan_only), record, error);
    TESS_TRY(tess_dist_agree(dist, status, error));
    if (!plan_only && dist->size == 1) /* ranks that share a host would disturb each other */
        tess_detect_learn(job, tess_clock() - job->begin);
    return TESS_OK;
}

static tess_status detect(tess_context *context, const tess_detect_settings *given, bool plan_only,
                          char **record)
{
    tess_detect_settings settings = *given;
    tess_voice voice;
    *record = NULL;
    tess_status status;
    tess_detect_job *job = tess_context_job(context, sizeof *job, &status);
    if (!job)
        return status;
    tess_voice_begin(&voice, context->dist, &settings.common);
    job->settings = &settings;
    job->begin = tess_clock();
    status = run(job, context, plan_only, record);
    tess_detect_close(job);
    tess_small_free(job);
    tess_voice_end(&voice);
    return status;
}

tess_status tess_detect(tess_context *context, const tess_detect_settings *settings, char **record)
{
    return detect(context, settings, false, record);
}

tess_status tess_plan_detect(tess_context *context, const tess_detect_settings *settings, char **record)
{
    return detect(context, settings, true, record);
}
