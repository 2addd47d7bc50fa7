/* What a run tells: lines of the log, event files, notes, and the record. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/trace.h"
#include "job/common/choice.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/train/train_job.h"

enum { LOG_EVERY = 10 };               /* steps; of a pipeline, which has few, each is logged */
static const double NOTE_SECONDS = 10; /* between two lines of progress */

static double samples_per_second(const tess_train_job *job)
{
    return job->train_seconds > 0 ? (double)job->samples / job->train_seconds : 0;
}

static uint64_t peak_bytes(const tess_train_job *job)
{
    tess_mem_usage peak;
    tess_memory_peak(job->engine.memory, tess_engine_scope(&job->engine), &peak);
    return peak.total;
}

/* Of the steps that are left, at the speed of this part of the run. */
static double seconds_left(const tess_train_job *job)
{
    const int64_t done = job->state.step - job->first_step, left = job->config.steps - job->state.step;
    return done > 0 ? (tess_clock() - job->begin) / (double)done * (double)left : 0;
}

static void say_progress(tess_train_job *job, const char *validation)
{
    tess_note(&job->settings->common, TESS_NOTE_PROGRESS,
              "step %lld of %lld: loss %.3e, %s%.0f samples/s, %.0f s left, %.1f MiB",
              (long long)job->state.step, (long long)job->config.steps, job->state.loss, validation,
              samples_per_second(job), seconds_left(job), (double)peak_bytes(job) / (1 << 20));
    job->noted = tess_clock();
}

tess_status tess_train_report_step(tess_train_job *job, tess_error *error)
{
    const int64_t step = job->state.step;
    tess_trace_set_figure(job->engine.memory->trace, TESS_FIGURE_LOSS, job->state.loss);
    if (tess_clock() - job->noted >= NOTE_SECONDS || (step == job->config.steps && !job->validator))
        say_progress(job, "");
    if (step % LOG_EVERY && step != job->config.steps && !job->spectral)
        return TESS_OK;
    if (job->events) {
        TESS_TRY(tess_events_scalar(job->events, "loss", step, job->state.loss, error));
        TESS_TRY(tess_events_scalar(job->events, "gradient_norm", step, job->state.norm, error));
        TESS_TRY(tess_events_scalar(job->events, "rate", step, job->rate, error));
        TESS_TRY(tess_events_scalar(job->events, "samples_per_second", step, samples_per_second(job), error));
    }
    if (!job->log)
        return TESS_OK;
    tess_json *line = tess_json_object();
    tess_json_set_int(&line, "step", step);
    tess_json_set_double(&line, "loss", job->state.loss);
    tess_json_set_double(&line, "gradient_norm", job->state.norm);
    tess_json_set_double(&line, "rate", job->rate);
    tess_json_set_double(&line, "samples_per_second", samples_per_second(job));
    tess_json_set_double(&line, "seconds_left", seconds_left(job));
    tess_json_set_int(&line, "peak_bytes", (int64_t)peak_bytes(job));
    return tess_log_line(job->log, line, error);
}

/* What a validation measures, and how it is told: a PSNR, or a loss, whose negative the validator gives. */
typedef struct measure {
    const char *key, *of_levels, *best, *unit;
    int digits;
    double sign;
} measure;

static const measure *measure_of(const tess_train_job *job)
{
    static const measure psnr = {"psnr_db", "psnr_of_levels_db", "best_psnr_db", " dB, ", 3, 1},
                         loss = {"validation_loss",
                                 "validation_loss_of_levels",
                                 "best_validation_loss",
                                 ", ",
                                 4,
                                 -1},
                         curve = {"validation_auroc", NULL, "best_validation_auroc", ", ", 4, 1};
    return job->spectral ? &curve : job->levels ? &loss : &psnr;
}

tess_status tess_train_report_psnr(tess_train_job *job, tess_error *error)
{
    const int64_t step = job->state.step;
    const measure *told = measure_of(job);
    if (!job->spectral && !job->levels)
        tess_trace_set_figure(job->engine.memory->trace, TESS_FIGURE_PSNR, job->psnr);
    char levels[200] = "validation ";
    tess_json *line = tess_json_object(), *each = tess_json_array();
    int used = (int)strlen(levels);
    for (int i = 0; i < tess_validator_levels(job->validator); i++) {
        const double value = told->sign * tess_validator_psnr(job->validator, i);
        tess_json_append_double(&each, value);
        if (used < (int)sizeof levels)
            used += snprintf(levels + used, sizeof levels - (size_t)used, "%s%.*f", i ? ", " : "",
                             told->digits, value);
    }
    tess_json_set_int(&line, "step", step);
    tess_json_set_double(&line, told->key, told->sign * job->psnr);
    if (job->spectral) {
        tess_json_free(each);
        tess_json_set_double(&line, "validation_average_precision", tess_validator_precision(job->validator));
        used += snprintf(levels + used, sizeof levels - (size_t)used, "AUROC %.4f", job->psnr);
    } else {
        tess_json_set(&line, told->of_levels, each);
    }
    if (used < (int)sizeof levels)
        snprintf(levels + used, sizeof levels - (size_t)used, "%s", told->unit);
    say_progress(job, levels);
    if (job->events) {
        const tess_status status = tess_events_scalar(job->events,
                                                      job->spectral ? told->key
                                                      : job->levels ? "validation_loss"
                                                                    : "validation_psnr_db",
                                                      step, told->sign * job->psnr, error);
        if (status != TESS_OK) {
            tess_json_free(line);
            return status;
        }
    }
    if (job->log)
        return tess_log_line(job->log, line, error);
    tess_json_free(line);
    return TESS_OK;
}

bool tess_train_validates(const tess_train_job *job)
{
    return job->config.validation.folder.path != NULL;
}

tess_json *tess_train_figures(const tess_train_job *job)
{
    tess_json *figures = tess_json_object();
    tess_json_set_int(&figures, "steps", job->state.step);
    tess_json_set_int(&figures, "updates", job->state.updates);
    tess_json_set_double(&figures, "loss", job->state.loss);
    tess_json_set_double(&figures, "gradient_norm", job->state.norm);
    tess_json_set_double(&figures, "seconds", job->state.seconds);
    const measure *told = measure_of(job);
    if (job->validator && isfinite(job->psnr) && told->sign * job->psnr > 0) {
        tess_json *levels = tess_json_array();
        tess_json_set_double(&figures, told->key, told->sign * job->psnr);
        for (int i = 0; i < tess_validator_levels(job->validator); i++)
            tess_json_append_double(&levels, told->sign * tess_validator_psnr(job->validator, i));
        if (job->spectral) {
            tess_json_free(levels);
            tess_json_set_double(&figures, "validation_average_precision",
                                 tess_validator_precision(job->validator));
        } else {
            tess_json_set(&figures, told->of_levels, levels);
        }
        tess_json_set_double(&figures, told->best, told->sign * job->state.best_psnr);
        tess_json_set_int(&figures, "best_step", job->state.best_step);
    }
    return figures;
}

/* Each phase has its own crops, and the memory limit may divide it in its own way. */
static tess_json *phases_record(const tess_train_job *job)
{
    tess_json *list = tess_json_array();
    for (int i = 0; i < job->config.phases.count; i++) {
        const tess_train_phase *phase = &job->config.phases.list[i];
        tess_json *entry = tess_json_object();
        tess_json_set_int(&entry, "steps", phase->steps);
        tess_json_set_int(&entry, "batch", phase->batch);
        tess_json_set_int(&entry, "crop", phase->crop);
        tess_json_set_int(&entry, "micro_batches", job->choices[i].micro_batches);
        tess_json_set_string(&entry, "recompute", tess_recompute_name(job->choices[i].recompute));
        tess_json_set_double(&entry, "seconds_per_step", job->choices[i].seconds);
        tess_json_append(&list, entry);
    }
    return list;
}

static double all_seconds(const tess_train_job *job)
{
    double seconds = 0;
    for (int i = 0; i < job->config.phases.count; i++)
        seconds += job->choices[i].seconds * (double)job->config.phases.list[i].steps;
    return seconds;
}

static tess_json *plan_record(const tess_train_job *job)
{
    const tess_mem_bytes bytes = job->planned;
    tess_json *plan = tess_json_object();
    tess_json_set_int(&plan, "batch", job->phase->batch);
    tess_json_set_int(&plan, "crop", job->phase->crop);
    tess_json_set_int(&plan, "micro_batches", job->choice.micro_batches);
    tess_json_set_string(&plan, "recompute", tess_recompute_name(job->choice.recompute));
    tess_json_set_string(&plan, "reason", job->choice.why);
    tess_json_set(&plan, "peak_bytes", tess_record_bytes(&bytes, tess_mem_total(&bytes)));
    tess_json_set_int(&plan, "host_bytes", (int64_t)bytes.by[TESS_MEM_HOST]);
    tess_json_set_double(&plan, "seconds_per_step", job->choice.seconds);
    tess_json_set_double(&plan, "seconds", all_seconds(job));
    tess_json_set_bool(&plan, "calibrated", job->choice.calibrated);
    tess_json_set_double(&plan, "tflop_per_step", tess_training_flops(job->training) * 1e-12);
    tess_choice_record(&job->engine, &plan);
    if (job->links.words[0])
        tess_json_set_string(&plan, "exchanges", job->links.words);
    if (job->config.phases.count > 1)
        tess_json_set(&plan, "phases", phases_record(job));
    return plan;
}

tess_json *tess_train_record(const tess_train_job *job, bool ran)
{
    tess_json *record = tess_record_begin("train", &job->engine), *train = tess_json_object();
    tess_json_set(&record, "plan", plan_record(job));
    tess_json_set_string(&train, "config", job->settings->config);
    tess_json_set_string(&train, "architecture", job->model.architecture);
    tess_json_set_int(&train, "parameters", job->model.parameters);
    tess_json_set_int(&train, "images", job->source->items);
    tess_json_set_string(&train, "output", job->config.output.given);
    tess_json_set_int(&train, "steps", job->config.steps);
    if (job->spectral)
        tess_train_describe_pipeline(job, &train);
    if (ran) {
        tess_json *measured = tess_json_object();
        tess_json_set_double(&measured, "seconds", job->train_seconds);
        tess_json_set_double(&measured, "wall_seconds", tess_clock() - job->begin);
        tess_json_set_double(&measured, "samples_per_second", samples_per_second(job));
        tess_json_set_double(&measured, "waited_seconds", job->queue ? tess_data_waited(job->queue) : 0);
        tess_json_set(&measured, "peak_bytes", tess_record_bytes(&job->peak.bytes, job->peak.total));
        tess_json_set_int(&measured, "resident_bytes", (int64_t)job->resident);
        tess_json_set_int(&measured, "overhead_bytes", (int64_t)job->overhead);
        if (job->links.nccl)
            tess_json_set_int(&measured, "nccl_bytes", (int64_t)tess_nccl_bytes(job->links.nccl));
        tess_json_set(&record, "measured", measured);
        tess_json_set(&train, "result", tess_train_figures(job));
        tess_json_set_int(&train, "first_step", job->first_step);
    }
    if (job->parts)
        tess_json_set(&train, "parts", tess_train_parts_record(job, ran));
    tess_json_set(&record, "train", train);
    return record;
}
