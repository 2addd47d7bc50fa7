/* Before a denoise job is planned: which files there are, what they hold, and with which device and models it runs. */
#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/context.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/denoise/denoise.h"

/* Loads what a device with separate memory loads on first use. A lack of memory is ignored here: it shows again when
 * the job's blocks are allocated, where the job can be planned again. */
static tess_status warm(tess_denoise_job *job, tess_error *error)
{
    tess_engine *engine = &job->engine;
    for (int m = 0; m < engine->model_count; m++) {
        const tess_engine_model *model = &engine->models[m];
        tess_status status = tess_queue_warm(engine->device, model->bound, model->model.net, error);
        if (status != TESS_OK && status != TESS_NO_MEMORY)
            return status;
    }
    engine->device->facts(engine->device, &engine->facts);
    return TESS_OK;
}

/* Warns about a noise level that the network ignores or was not trained for. */
static void doubt_sigma(const tess_denoise_job *job, const tess_engine_model *m)
{
    const tess_denoise_settings *s = job->settings;
    double sigma = 0; /* the largest */
    for (int64_t i = 0; i < job->count; i++)
        if (job->files[i].model == m && job->files[i].sigma > sigma)
            sigma = job->files[i].sigma;
    if (!m->model.noise_map && s->sigma >= 0)
        tess_note(&s->common, TESS_NOTE_WARNING, "`sigma` has no effect: the model %s takes no noise level",
                  m->path);
    else if (sigma > m->model.sigma_most)
        tess_note(&s->common, TESS_NOTE_WARNING,
                  "noise level %.4g: the model %s was trained for levels up to %.4g on the [0,1] scale; the "
                  "result may be poor",
                  sigma, m->path, m->model.sigma_most);
}

static tess_status list_files(tess_denoise_job *job, tess_error *error)
{
    TESS_TRY(tess_denoise_list(job, error));
    job->listed = true;
    TESS_TRY(tess_denoise_check_targets(job, error));
    tess_denoise_note_list(job);
    return TESS_OK;
}

/* Files of a job whose noise is compared with a level that is given: this takes as long as to estimate it. */
enum { DOUBTED = 3 };

static tess_status describe_file(tess_denoise_job *job, tess_denoise_file *file, tess_error *error)
{
    const tess_denoise_settings *s = job->settings;
    const char *used[] = {file->input, file->output, file->truth};
    TESS_TRY(tess_stop_check(&job->engine.stop, error));
    TESS_TRY(tess_record_apart(&s->common, used, 3, error));
    if (file->skipped)
        return TESS_OK;
    tess_status status = TESS_OK;
    for (int k = 0; k < 3 && status == TESS_OK; k++)
        if (used[k])
            status = tess_image_load_library(used[k], error);
    if (status == TESS_OK)
        status = tess_denoise_describe(&job->engine, s, file, error);
    if (status == TESS_OK && file - job->files < DOUBTED)
        status = tess_denoise_doubt_given_sigma(&job->engine, s, file, error);
    file->fresh = true;
    return tess_denoise_settle(job, file, status, error);
}

/* Reading headers, and samples where the noise is estimated, is shared by the ranks. */
static tess_status describe_files(tess_denoise_job *job, tess_error *error)
{
    tess_dist *dist = job->engine.dist;
    const uint32_t counter = tess_dist_counter(dist);
    tess_status status = TESS_OK;
    tess_voice_own(job->voice, true);
    for (int64_t i; status == TESS_OK && (i = tess_dist_next(dist, counter)) < job->count;)
        status = describe_file(job, &job->files[i], error);
    tess_voice_own(job->voice, false);
    if (status != TESS_OK)
        tess_dist_drain(dist, counter);
    TESS_TRY(tess_dist_agree(dist, status, error));
    return tess_denoise_share(job, error);
}

tess_status tess_denoise_prepare(tess_denoise_job *job, tess_context *context, bool will_run,
                                 tess_error *error)
{
    const tess_denoise_settings *s = job->settings;
    TESS_TRY(tess_choice_open_ranks(&job->engine, context->dist, &context->memory, &s->common, error));
    TESS_TRY(tess_dist_agree(job->engine.dist, list_files(job, error), error));
    TESS_TRY(tess_denoise_same_list(job, error));
    TESS_TRY(describe_files(job, error));
    tess_denoise_close_unused_models(job);
    TESS_TRY(tess_denoise_same_model(job, error));
    for (int m = 0; m < job->engine.model_count; m++) {
        const char *const weights = job->engine.models[m].path;
        TESS_TRY(tess_record_apart(&s->common, &weights, 1, error));
        for (int64_t i = 0; i < job->count; i++)
            if (tess_denoise_todo(&job->files[i]) && tess_image_same_target(job->files[i].output, weights))
                return tess_fail(error, TESS_BAD_OPTION,
                                 "%s: the result would be written over the model; give it another name",
                                 job->files[i].output);
        doubt_sigma(job, &job->engine.models[m]);
    }
    for (int m = 0; m < job->engine.model_count; m++)
        job->volumes |= job->engine.models[m].model.volume; /* a model given by name is used for all files */
    TESS_TRY(tess_denoise_choose(job, error));
    if (will_run && job->engine.separate_memory && !job->volumes)
        TESS_TRY(tess_dist_agree(job->engine.dist, warm(job, error), error));
    if (tess_denoise_in_strips(job) && job->engine.separate_memory && !job->volumes && s->tile_height <= 0)
        TESS_TRY(tess_card_links_open(&job->links, &job->engine, &s->common, will_run, error));
    tess_process_reset_peak();
    tess_memory_reset_peak(&context->memory);
    job->overhead = tess_process_resident();
    return TESS_OK;
}
