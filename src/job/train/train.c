/* train: trains a denoiser, or a model that fills elevation maps, from a configuration file. */
#include <string.h>

#include "base/clock.h"
#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/context.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/train/train_job.h"

void tess_train_settings_init(tess_train_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    tess_common_init(&settings->common);
}

/* Steps of the whole run of one phase; a few steps show only what the first ones load. */
static void learn(tess_train_job *job)
{
    enum { ENOUGH = 8 };
    const int64_t steps = job->state.step - job->first_step;
    bool known = true;
    const double factor = tess_rates_operator(job->engine.rates, job->factor, &known);
    if (job->config.phases.count == 1 && steps >= ENOUGH && job->choice.seconds > 0)
        tess_rates_set_operator(job->engine.rates, job->factor,
                                job->train_seconds / (double)steps / (job->choice.seconds / factor));
    const tess_choice_run run = {.verb = "train",
                                 .wall = tess_clock() - job->opened,
                                 .seconds = job->train_seconds,
                                 .planned = job->choice.seconds * (double)steps,
                                 .calibrated = known && job->config.phases.count == 1};
    tess_choice_learn(&job->engine, &run);
    (void)tess_rates_save(job->engine.rates, NULL);
}

static tess_status train(tess_context *context, const tess_train_settings *settings, bool plan_only,
                         char **record)
{
    tess_error *error = &context->error;
    *record = NULL;
    tess_train_settings own = *settings;
    if (context->dist->rank != 0)
        own.common.note = NULL; /* the notes of a run come up on every rank */
    tess_status status;
    tess_train_job *job = tess_context_job(context, sizeof *job, &status);
    if (!job)
        return status;
    job->settings = &own;
    job->dist = context->dist;
    job->plans_only = plan_only;
    job->opened = job->begin = tess_clock();
    status = tess_train_open(job, &context->memory, error);
    bool ran = false;
    if (status == TESS_OK && !plan_only) {
        tess_process_reset_peak();
        tess_memory_reset_peak(&context->memory);
        job->overhead = tess_process_resident();
        tess_note(&own.common, TESS_NOTE_DETAIL, "%s", job->choice.why);
        job->begin = tess_clock();
        status = tess_train_run(job, error);
        ran = job->state.step > 0;
    }
    const bool told_of = job->training && (status == TESS_OK || status == TESS_INTERRUPTED);
    tess_error ignored;
    if (told_of && ran && tess_train_share_figures(job, &ignored) != TESS_OK)
        ran = false;
    if (told_of) {
        tess_json *told = tess_train_record(job, ran);
        if (status == TESS_INTERRUPTED)
            tess_json_set_bool(&told, "interrupted", true);
        const tess_status written = tess_record_end(told, record, status == TESS_OK ? error : &ignored);
        status = status == TESS_OK ? written : status;
    }
    status = tess_dist_agree(job->dist, status, error);
    if (ran && status == TESS_OK && job->dist->size == 1)
        learn(job);
    tess_train_close(job);
    tess_small_free(job);
    if (context->dist->rank != 0) {
        tess_record_free(*record);
        *record = NULL;
    }
    return status;
}

tess_status tess_train(tess_context *context, const tess_train_settings *settings, char **record)
{
    return train(context, settings, false, record);
}

tess_status tess_plan_train(tess_context *context, const tess_train_settings *settings, char **record)
{
    return train(context, settings, true, record);
}
