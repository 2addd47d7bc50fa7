/* detect: scores of anomalies in hyperspectral cubes. */
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/context.h"
#include "job/common/record.h"
#include "job/detect/detect_job.h"

void tess_detect_settings_init(tess_detect_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    tess_common_init(&settings->common);
}

static tess_status detect(tess_context *context, const tess_detect_settings *settings, bool plan_only,
                          char **record)
{
    tess_error *error = &context->error;
    *record = NULL;
    TESS_TRY(tess_context_alone(context, "detect"));
    tess_detect_job *job = tess_small_alloc(1, sizeof *job); /* the engine must not move, and it is large */
    if (!job)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a job");
    job->settings = settings;
    job->begin = tess_clock();
    tess_status status = tess_detect_open(job, &context->memory, error);
    if (status == TESS_OK && !plan_only) {
        tess_process_reset_peak();
        tess_memory_reset_peak(&context->memory);
        job->overhead = tess_process_resident();
        status = tess_detect_run(job, error);
    }
    if (status == TESS_OK)
        status = tess_record_end(tess_detect_record(job, !plan_only), record, error);
    if (status == TESS_OK && !plan_only)
        tess_detect_learn(job, tess_clock() - job->begin);
    tess_detect_close(job);
    tess_small_free(job);
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
