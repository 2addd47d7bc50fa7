/* The loop of a training run. On a card the next step is queued while the host still waits for the one before (train/steps.h), unless the
 * step before decides about it; then at least its first batch is copied. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/trace.h"
#include "job/common/note.h"
#include "job/train/train_job.h"

static tess_status not_finite(const tess_train_job *job, tess_error *error)
{
    char last[64] = "there is no checkpoint yet";
    if (job->saved_step >= 0)
        snprintf(last, sizeof last, "the last checkpoint is of step %lld", (long long)job->saved_step);
    return tess_fail(error, TESS_BAD_INPUT,
                     "step %lld: the loss is %g and the norm of its gradients %g; %s; use a smaller "
                     "optimizer.rate, or optimizer.clip",
                     (long long)job->state.step, job->state.loss, job->state.norm, last);
}

static bool due(int64_t step, int64_t every, int64_t end)
{
    return step == end || (every > 0 && step % every == 0);
}

static bool validates_after(const tess_train_job *job, int64_t step)
{
    return tess_train_validates(job) && due(step, job->config.validation.every, job->config.steps);
}

static bool saves_after(const tess_train_job *job, int64_t step)
{
    return due(step, job->config.checkpoint.every, job->config.steps);
}

/* Ranks agree before the last pass, because in it they wait for each other: a rank that has no batch ends the step everywhere. */
static tess_status run_passes(tess_train_job *job, tess_steps *steps, tess_error *error)
{
    const int last = job->choice.micro_batches - 1;
    tess_status status = TESS_OK;
    for (int m = 0; m <= last; m++) {
        if (!steps->fed && status == TESS_OK)
            status = tess_steps_feed(steps, error);
        steps->fed = false;
        if (m == last)
            status = tess_dist_agree(job->dist, status, error);
        else if (status == TESS_OK)
            tess_training_pass(job->training, m, NULL);
    }
    return status == TESS_OK ? tess_train_last_pass(job, last, error) : status;
}

/* Queues the step that follows a state. */
static tess_status queue_step(tess_train_job *job, tess_steps *steps, const tess_train_state *state,
                              tess_error *error)
{
    double control[TESS_CONTROLS];
    tess_train_control(&job->config, state, control);
    control[TESS_CONTROL_EPOCH] = tess_train_epoch(job, state->step);
    tess_training_control(job->training, control, NULL);
    TESS_TRY(run_passes(job, steps, error));
    tess_training_update(job->training, NULL);
    tess_training_end(job->training, NULL);
    return TESS_OK;
}

/* Queues the step after the one that is in work, as if that were good: otherwise the run ends. Before a validation or a checkpoint, which
 * need the parameters as they are between the two, and before the end, only its first batch is copied. */
static tess_status queue_next(tess_train_job *job, tess_steps *steps, int64_t end, tess_error *error)
{
    const int64_t done = job->state.step + 1;
    tess_train_state next = job->state;
    /* The parameters are those of the next step now, so this one is finished whatever happens to the next batch: its
     * failure comes again when it is needed. */
    tess_error later;
    steps->fed = done < end && tess_steps_feed(steps, &later) == TESS_OK;
    if (!steps->fed || !tess_train_overlaps(job, job->choice.micro_batches) || validates_after(job, done) ||
        saves_after(job, done) || tess_trace_profiles(job->engine.memory->trace))
        return TESS_OK;
    (void)tess_train_state_advance(&next, false, true);
    return queue_step(job, steps, &next, error);
}

/* Waits for the step in work, and counts it. */
static tess_status finish_step(tess_train_job *job, tess_steps *steps, double start, tess_error *error)
{
    TESS_TRY(tess_train_share_result(
        job, tess_steps_result(steps, job->state.step, &job->state.loss, &job->state.norm, error), error));
    job->ended = tess_clock();
    job->train_seconds += job->ended - start;
    job->state.seconds += job->ended - start;
    job->samples += job->phase->batch;
    job->rate = tess_train_rate_of(&job->config, &job->state);
    const bool finite = isfinite(job->state.loss) && isfinite(job->state.norm);
    if (!tess_train_state_advance(&job->state, job->engine.dtype == TESS_F16, finite))
        return not_finite(job, error);
    return TESS_OK;
}

static tess_status step(tess_train_job *job, tess_steps *steps, int64_t end, tess_error *error)
{
    const bool queued = tess_training_queued(job->training) > 0;
    const double start = queued ? job->ended : tess_clock();
    if (!queued)
        TESS_TRY(queue_step(job, steps, &job->state, error));
    TESS_TRY(queue_next(job, steps, end, error));
    return finish_step(job, steps, start, error);
}

static tess_status measure_here(tess_train_job *job, tess_error *error)
{
    if (job->spectral) {
        TESS_TRY(tess_train_take_values(job, error));
        return tess_validator_run(job->validator, NULL, &job->psnr, error);
    }
    tess_train_source source = {.parameters = tess_training_parameters(job->training),
                                .blocks = tess_train_blocks(job),
                                .state =
                                    job->config.average > 0 ? TESS_STATE_AVERAGE : TESS_STATE_PARAMETERS};
    tess_weights *weights = NULL;
    TESS_TRY(tess_train_weights(&source, TESS_F32, &weights, error));
    const tess_status status = tess_validator_run(job->validator, weights, &job->psnr, error);
    tess_weights_close(weights);
    return status;
}

static tess_status measure_psnr(tess_train_job *job, tess_error *error)
{
    TESS_TRY(tess_train_follow(job, tess_train_leads(job) ? measure_here(job, error) : TESS_OK, error));
    return tess_dist_broadcast(job->dist, 0, &job->psnr, sizeof job->psnr, error);
}

static tess_status validate(tess_train_job *job, tess_error *error)
{
    TESS_TRY(measure_psnr(job, error));
    (void)tess_train_state_validated(&job->config, &job->state, job->psnr);
    return tess_train_follow(job, tess_train_leads(job) ? tess_train_report_psnr(job, error) : TESS_OK,
                             error);
}

/* True if the last validations were no better than an earlier one. */
static bool is_settled(const tess_train_job *job)
{
    const int64_t patience = job->config.validation.patience;
    return patience > 0 && tess_train_validates(job) && job->state.validated_step == job->state.step &&
           job->state.step - job->state.best_step > patience * job->config.validation.every;
}

static tess_status after_step(tess_train_job *job, tess_error *error)
{
    const int64_t done = job->state.step;
    const tess_status reported = tess_train_leads(job) ? tess_train_report_step(job, error) : TESS_OK;
    if (done == job->first_step + 1)
        TESS_TRY(tess_train_compare(job, error));
    TESS_TRY(tess_train_follow(job, reported, error));
    if (validates_after(job, done))
        TESS_TRY(validate(job, error));
    if (saves_after(job, done))
        TESS_TRY(tess_train_save(job, error));
    tess_stop_add(&job->stop, 1);
    return tess_dist_agree(job->dist, tess_stop_check(&job->stop, error), error);
}

/* A run that was stopped during a validation did not count it, and one that was finished needs its figures again. */
static tess_status validate_resumed(tess_train_job *job, tess_error *error)
{
    const int64_t step = job->state.step;
    if (step == 0 || !validates_after(job, step))
        return TESS_OK;
    if (job->state.validated_step != step) {
        TESS_TRY(validate(job, error));
        job->saved_step = -1; /* the checkpoint lacks it */
        return tess_train_save(job, error);
    }
    return step == job->config.steps || is_settled(job) ? measure_psnr(job, error) : TESS_OK;
}

static tess_status open_queue(tess_train_job *job, tess_error *error)
{
    job->data.first_step = job->state.step;
    TESS_TRY(
        tess_feed_open(&job->feed, job->engine.device, job->training, job->source, job->config.seed, error));
    return tess_data_open(&job->data, &job->queue, error);
}

/* The parameters are already those after the step that was queued ahead: it counts too. A validation after it comes when the run goes
 * on. */
static tess_status finish_queued(tess_train_job *job, tess_steps *steps, tess_error *error)
{
    TESS_TRY(finish_step(job, steps, job->ended, error));
    TESS_TRY(tess_train_report_step(job, error));
    return TESS_INTERRUPTED;
}

static tess_status run_phase(tess_train_job *job, int64_t end, tess_error *error)
{
    tess_status status = tess_dist_agree(job->dist, open_queue(job, error), error);
    tess_steps steps = {.training = job->training, .queue = job->queue, .feed = &job->feed};
    while (status == TESS_OK && job->state.step < end) {
        status = step(job, &steps, end, error);
        if (status == TESS_OK)
            status = after_step(job, error);
        if (is_settled(job))
            break;
    }
    if (status == TESS_INTERRUPTED && tess_training_queued(job->training) > 0)
        status = finish_queued(job, &steps, error);
    tess_steps_stop(&steps);
    return status;
}

/* Stopped by the caller: the parameters are those of a finished step. */
static tess_status stopped(tess_train_job *job, tess_error *error)
{
    TESS_TRY(tess_train_save(job, error));
    return tess_fail(error, TESS_INTERRUPTED,
                     "stopped after step %lld of %lld; the checkpoint is written, and `resume` goes on",
                     (long long)job->state.step, (long long)job->config.steps);
}

static tess_status open_outputs(tess_train_job *job, tess_error *error)
{
    const int64_t at = job->settings->resume ? job->state.step : -1;
    if (job->log)
        tess_log_resume(job->log, at);
    if (job->config.tensorboard.path)
        TESS_TRY(tess_events_open(job->config.tensorboard.path, at, &job->events, error));
    return TESS_OK;
}

static int64_t phase_end(const tess_train_config *config, const tess_train_phase *phase)
{
    int64_t end = 0;
    for (int i = 0; i < config->phases.count; i++) {
        end += config->phases.list[i].steps;
        if (&config->phases.list[i] == phase)
            return i + 1 == config->phases.count ? config->steps : end;
    }
    return config->steps;
}

static tess_status run_phases(tess_train_job *job, tess_error *error)
{
    while (job->state.step < job->config.steps && !is_settled(job)) {
        const tess_train_phase *phase = tess_train_config_phase(&job->config, job->state.step);
        if (phase != job->phase)
            TESS_TRY(tess_train_next_phase(job, phase, error));
        TESS_TRY(run_phase(job, phase_end(&job->config, phase), error));
    }
    return tess_train_save(job, error);
}

/* What only rank 0 has: files, and a validation. */
static tess_status open_files(tess_train_job *job, tess_error *error)
{
    if (!tess_train_leads(job))
        return TESS_OK;
    if (job->config.log.path) /* first, because it may be refused */
        TESS_TRY(tess_log_open(job->config.log.path, &job->log, error));
    TESS_TRY(tess_checkpoints_open(job->engine.memory, job->config.checkpoint.folder.path, &job->checkpoints,
                                   error));
    return job->settings->resume ? TESS_OK : tess_checkpoints_check_empty(job->checkpoints, error);
}

static tess_status begin(tess_train_job *job, tess_error *error)
{
    TESS_TRY(tess_train_follow(job, open_files(job, error), error));
    TESS_TRY(tess_train_prepare(job, error));
    TESS_TRY(tess_train_begin_values(job, error));
    job->saved_step = job->settings->resume ? job->state.step : -1;
    job->first_step = job->state.step;
    tess_status status = job->validator ? tess_validator_prepare(job->validator, error) : TESS_OK;
    if (status == TESS_OK && tess_train_leads(job))
        status = open_outputs(job, error);
    return tess_train_follow(job, status, error);
}

tess_status tess_train_run(tess_train_job *job, tess_error *error)
{
    TESS_TRY(begin(job, error));
    tess_stop_begin(&job->stop, job->config.steps);
    tess_stop_add(&job->stop, job->state.step);
    job->noted = tess_clock();
    tess_status status = validate_resumed(job, error);
    if (status == TESS_OK)
        status = run_phases(job, error);
    if (status == TESS_INTERRUPTED)
        return stopped(job, error);
    TESS_TRY(status);
    tess_checkpoints_close(job->checkpoints); /* its buffer makes room for that of the result */
    job->checkpoints = NULL;
    TESS_TRY(tess_train_write(job, error));
    tess_stop_end(&job->stop);
    return TESS_OK;
}
