/* The state of a run: first values, checkpoints, the change from one phase to the next, the result. */
#include "job/common/note.h"
#include "job/train/train_job.h"
#include "train/init.h"

static tess_status get(void *user, tess_training_state state, int64_t first, int64_t count, float *values,
                       tess_error *error)
{
    return tess_training_get(((tess_train_job *)user)->training, state, first, count, values, error);
}

static tess_status set(void *user, tess_training_state state, int64_t first, int64_t count,
                       const float *values, tess_error *error)
{
    return tess_training_set(((tess_train_job *)user)->training, state, first, count, values, error);
}

tess_checkpoint_blocks tess_train_blocks(tess_train_job *job)
{
    tess_checkpoint_blocks blocks = {.user = job, .get = get, .set = set};
    for (int i = 0; i < TESS_STATES; i++)
        blocks.sizes[i] = tess_training_state_size(job->training, (tess_training_state)i);
    return blocks;
}

static tess_checkpoint_contents contents_of(tess_train_job *job)
{
    return (tess_checkpoint_contents){.config = &job->config,
                                      .parameters = tess_training_parameters(job->training),
                                      .blocks = tess_train_blocks(job),
                                      .images = job->source->images};
}

/* From the file that the configuration names, or drawn. */
static tess_status first_values(tess_train_job *job, float *trained, float *running, tess_error *error)
{
    const tess_parameters *parameters = tess_training_parameters(job->training);
    TESS_TRY(job->spectral ? tess_train_first_pipeline_values(job, trained, running, error)
             : job->config.network.weights.path
                 ? tess_parameters_read(parameters, job->start, trained, running, error)
                 : tess_train_init_values(parameters, job->config.init, job->config.seed, trained, running,
                                          error));
    TESS_TRY(tess_training_set(job->training, TESS_STATE_PARAMETERS, 0, parameters->trained, trained, error));
    if (tess_training_state_size(job->training, TESS_STATE_AVERAGE))
        TESS_TRY(
            tess_training_set(job->training, TESS_STATE_AVERAGE, 0, parameters->trained, trained, error));
    if (parameters->running)
        TESS_TRY(
            tess_training_set(job->training, TESS_STATE_RUNNING, 0, parameters->running, running, error));
    return TESS_OK;
}

static void on_note(void *user, tess_note_level level, const char *text)
{
    tess_note(&((tess_train_job *)user)->settings->common, level, "%s", text);
}

tess_status tess_train_prepare(tess_train_job *job, tess_error *error)
{
    tess_status status = tess_training_prepare(job->training, error);
    if (status == TESS_OK)
        status = tess_train_open_sums(job, error);
    return tess_dist_agree(job->dist, status, error);
}

static tess_status begin_values(tess_train_job *job, tess_error *error)
{
    const tess_parameters *parameters = tess_training_parameters(job->training);
    tess_train_state_init(&job->state, &job->config, job->engine.dtype == TESS_F16);
    if (job->spectral)
        TESS_TRY(tess_train_begin_pipeline(job, error));
    if (job->settings->resume) {
        const tess_checkpoint_contents contents = contents_of(job);
        return tess_checkpoint_read(job->checkpoints, &contents, on_note, job, &job->state, error);
    }
    tess_block trained = {0}, running = {0};
    tess_status status = tess_block_alloc(job->engine.memory, &trained, TESS_MEM_HOST,
                                          (size_t)parameters->trained * sizeof(float), error);
    if (status == TESS_OK)
        status = tess_block_alloc(job->engine.memory, &running, TESS_MEM_HOST,
                                  (size_t)(parameters->running + 1) * sizeof(float), error);
    if (status == TESS_OK)
        status = first_values(job, trained.data, running.data, error);
    tess_block_free(&trained);
    tess_block_free(&running);
    return status;
}

tess_status tess_train_begin_values(tess_train_job *job, tess_error *error)
{
    TESS_TRY(tess_train_follow(job, tess_train_leads(job) ? begin_values(job, error) : TESS_OK, error));
    return tess_train_share_state(job, error);
}

tess_status tess_train_save(tess_train_job *job, tess_error *error)
{
    const tess_checkpoint_contents contents = contents_of(job);
    if (job->saved_step == job->state.step)
        return TESS_OK;
    TESS_TRY(tess_train_compare(job, error));
    tess_status status = TESS_OK;
    if (tess_train_leads(job))
        status = tess_checkpoint_write(job->checkpoints, &contents, &job->state, error);
    TESS_TRY(tess_train_follow(job, status, error));
    job->saved_step = job->state.step;
    return TESS_OK;
}

static tess_status write_result(tess_train_job *job, tess_error *error)
{
    if (job->spectral)
        return tess_train_write_pipeline(job, error);
    tess_train_source source = {.parameters = tess_training_parameters(job->training),
                                .blocks = tess_train_blocks(job),
                                .state =
                                    job->config.average > 0 ? TESS_STATE_AVERAGE : TESS_STATE_PARAMETERS};
    tess_weights *weights = NULL;
    tess_json *figures = tess_train_figures(job);
    tess_status status = tess_train_weights(&source, job->config.output_type, &weights, error);
    if (status == TESS_OK && job->levels)
        status = tess_train_describe_diffusion(job, weights, error);
    if (status == TESS_OK)
        status = tess_train_write_result(job->engine.memory, &job->config, weights, figures, error);
    tess_weights_close(weights);
    tess_json_free(figures);
    return status;
}

tess_status tess_train_write(tess_train_job *job, tess_error *error)
{
    return tess_train_follow(job, tess_train_leads(job) ? write_result(job, error) : TESS_OK, error);
}

/* Through a checkpoint, so that the state is never held twice. */
tess_status tess_train_next_phase(tess_train_job *job, const tess_train_phase *phase, tess_error *error)
{
    TESS_TRY(tess_train_save(job, error));
    TESS_TRY(tess_dist_agree(job->dist, tess_train_plan_phase(job, phase, error), error));
    TESS_TRY(tess_train_prepare(job, error));
    const tess_checkpoint_contents contents = contents_of(job);
    tess_status status = TESS_OK;
    if (tess_train_leads(job))
        status = tess_checkpoint_read(job->checkpoints, &contents, on_note, job, &job->state, error);
    TESS_TRY(tess_train_follow(job, status, error));
    return tess_train_share_state(job, error);
}
