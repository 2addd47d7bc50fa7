/* The loop of a training run. The next batch is copied to the device while the host still waits for the step before, so
 * that the device is idle only between two launches. */
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "job/common/note.h"
#include "job/train/train_job.h"

enum { MOST_PARTS = 64 };

/* Batches that the device may still read, until the next synchronisation. */
typedef struct held {
    tess_batch batches[MOST_PARTS + 1];
    int count;
    bool fed; /* the first part of the next step is on its way to the device */
} held;

static tess_status feed(tess_train_job *job, held *h, tess_error *error)
{
    tess_batch *batch = &h->batches[h->count];
    TESS_TRY(tess_data_take(job->queue, batch, error));
    h->count++;
    tess_feed_batch(&job->feed, batch);
    return TESS_OK;
}

static void release(tess_train_job *job, held *h)
{
    for (int i = 0; i < h->count; i++)
        tess_data_release(job->queue, &h->batches[i]);
    h->count = 0;
}

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

/* Ranks agree before the last pass, because in it they wait for each other: a rank that has no batch ends the step everywhere. */
static tess_status run_passes(tess_train_job *job, held *h, tess_error *error)
{
    const int last = job->choice.micro_batches - 1;
    tess_status status = TESS_OK;
    for (int m = 0; m <= last; m++) {
        if (!h->fed && status == TESS_OK)
            status = feed(job, h, error);
        h->fed = false;
        if (m == last)
            status = tess_dist_agree(job->dist, status, error);
        else if (status == TESS_OK)
            tess_training_pass(job->training, m, NULL);
    }
    return status == TESS_OK ? tess_train_last_pass(job, last, error) : status;
}

static tess_status step(tess_train_job *job, held *h, bool last, tess_error *error)
{
    double control[TESS_CONTROLS];
    const double start = tess_clock();
    tess_train_control(&job->config, &job->state, control);
    job->rate = control[TESS_CONTROL_RATE];
    control[TESS_CONTROL_EPOCH] = tess_train_epoch(job, job->state.step);
    tess_training_control(job->training, control, NULL);
    TESS_TRY(run_passes(job, h, error));
    tess_training_update(job->training, NULL);
    /* The parameters are those of the next step now, so this one is finished whatever happens to the next batch: its
     * failure comes again when it is needed. */
    tess_error later;
    h->fed = !last && feed(job, h, &later) == TESS_OK;
    TESS_TRY(tess_train_share_result(
        job, tess_training_result(job->training, NULL, &job->state.loss, &job->state.norm, error), error));
    release(job, h);
    job->train_seconds += tess_clock() - start;
    job->samples += job->phase->batch;
    const bool finite = isfinite(job->state.loss) && isfinite(job->state.norm);
    if (!tess_train_state_advance(&job->state, job->engine.dtype == TESS_F16, finite))
        return not_finite(job, error);
    job->state.seconds += tess_clock() - start;
    return TESS_OK;
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

static bool due(int64_t step, int64_t every, int64_t end)
{
    return step == end || (every > 0 && step % every == 0);
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
    const int64_t done = job->state.step, end = job->config.steps;
    const tess_status reported = tess_train_leads(job) ? tess_train_report_step(job, error) : TESS_OK;
    if (done == job->first_step + 1)
        TESS_TRY(tess_train_compare(job, error));
    TESS_TRY(tess_train_follow(job, reported, error));
    if (tess_train_validates(job) && due(done, job->config.validation.every, end))
        TESS_TRY(validate(job, error));
    if (due(done, job->config.checkpoint.every, end))
        TESS_TRY(tess_train_save(job, error));
    tess_stop_add(&job->stop, 1);
    return tess_dist_agree(job->dist, tess_stop_check(&job->stop, error), error);
}

/* A run that was stopped during a validation did not count it, and one that was finished needs its figures again. */
static tess_status validate_resumed(tess_train_job *job, tess_error *error)
{
    const int64_t step = job->state.step;
    if (!tess_train_validates(job) || step == 0 ||
        !due(step, job->config.validation.every, job->config.steps))
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

static tess_status run_phase(tess_train_job *job, int64_t end, tess_error *error)
{
    held h = {.count = 0};
    tess_status status = tess_dist_agree(job->dist, open_queue(job, error), error);
    while (status == TESS_OK && job->state.step < end) {
        status = step(job, &h, job->state.step + 1 == end, error);
        if (status == TESS_OK)
            status = after_step(job, error);
        if (is_settled(job))
            break;
    }
    if (job->queue)
        release(job, &h);
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
