/* fill: fills the voids of an elevation map. */
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/context.h"
#include "job/common/record.h"
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
    const tess_choice_run run = {"fill", tess_clock() - job->begin, job->compute_seconds,
                                 job->planned_seconds, job->calibrated};
    tess_choice_learn(&job->engine, &run);
    if (!job->calibrated)
        tess_choice_measure_net(&job->engine, job->step, shape, job->planned_total);
}

static tess_status fill(tess_context *context, const tess_fill_settings *settings, bool plan_only,
                        char **record)
{
    tess_error *error = &context->error;
    *record = NULL;
    TESS_TRY(tess_context_alone(context, "fill"));
    tess_fill_job *job = tess_small_alloc(1, sizeof *job); /* the engine must not move, and it is large */
    if (!job)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a job");
    job->settings = settings;
    job->begin = tess_clock();
    tess_status status = tess_fill_open(job, &context->memory, plan_only, error);
    const bool opened = status == TESS_OK;
    if (opened && !plan_only) {
        tess_process_reset_peak();
        tess_memory_reset_peak(&context->memory);
        job->overhead = tess_process_resident();
        status = tess_fill_run(job, error);
    }
    if (opened && (status == TESS_OK || status == TESS_INTERRUPTED)) {
        tess_error ignored;
        tess_json *told = tess_fill_record(job, !plan_only);
        if (status == TESS_INTERRUPTED)
            tess_json_set_bool(&told, "interrupted", true);
        const tess_status written = tess_record_end(told, record, status == TESS_OK ? error : &ignored);
        status = status == TESS_OK ? written : status;
    }
    if (status == TESS_OK && !plan_only && job->list.count > job->resumed)
        calibrate(job);
    tess_fill_close(job);
    tess_small_free(job);
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
