/* The reconstruct job: describe the problem, plan, run, record. Only this file uses all parts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/process.h"
#include "job/common/choice.h"
#include "job/common/context.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/reconstruct/detector_grid.h"
#include "job/reconstruct/problem_data.h"
#include "job/reconstruct/problem_range.h"
#include "job/reconstruct/reconstruct_choose.h"
#include "job/reconstruct/reconstruct_rates.h"
#include "job/reconstruct/reconstruct_record.h"
#include "job/reconstruct/views.h"

typedef struct reconstruct_job {
    const tess_reconstruct_settings *settings;
    tess_engine engine;
    tess_problem problem;
    tess_recipe recipe;
    tess_outputs outputs;
    tess_prior prior;
    tess_workspace workspace;
    tess_budget budget;
    tess_start start;
    tess_outcome outcome;
    tess_usage usage;
} reconstruct_job;

/* Chooses the network for the image. A colour network assumes that all colours share their edges; in the synthetic
 * picture each colour has its own, so there colours are denoised one by one. */
static tess_status find_model(reconstruct_job *job, tess_error *error)
{
    const int64_t channels = job->problem.channels;
    const bool published = job->settings->preset && strcmp(job->settings->preset, "deepinv") == 0,
               drawn = job->problem.synthetic && !job->problem.image;
    const char *name = job->settings->model                     ? job->settings->model
                       : channels == 3 && (published || !drawn) ? "drunet-color-small"
                                                                : "drunet-gray-small";
    const bool flat = job->problem.depth == 1,
               slices = job->settings->prior && strcmp(job->settings->prior, "slices") == 0;
    TESS_TRY(job->recipe.volume
                 ? tess_engine_volume_of(&job->engine, name, job->recipe.inflation, &job->prior.model, error)
                 : tess_engine_model_of(&job->engine, name, &job->prior.model, error));
    const tess_model_net *model = &job->prior.model->model;
    if (model->channels != channels && model->channels != 1)
        return tess_fail(error, TESS_BAD_OPTION, "the image has %lld channel(s), but the model %s takes %lld",
                         (long long)channels, name, (long long)model->channels);
    if (model->volume && flat)
        return tess_fail(error, TESS_BAD_OPTION, "the model %s takes volumes; %s is an image", name,
                         job->problem.name);
    if (model->volume && slices)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`prior` slices: the model %s takes volumes; leave it out, or use a 2-D one", name);
    job->prior.engine = &job->engine;
    return TESS_OK;
}

/* The caller's record must not replace a file that is read: each may also be a folder of views. */
static tess_status check_record(const tess_problem *p, const tess_common *common, tess_error *error)
{
    const char *const read[] = {p->measurement, p->truth, p->geometry, p->image, p->flat, p->dark};
    for (int i = 0; i < 6 && common->record_file; i++) {
        const bool inside = read[i] && tess_views_same_file(common->record_file, read[i]);
        TESS_TRY(tess_record_apart(common, inside ? &common->record_file : &read[i], 1, error));
    }
    for (int64_t i = 0; p->kernel_files && i < p->count; i++)
        TESS_TRY(tess_record_apart(common, (const char *const *)&p->kernel_files[i], 1, error));
    return TESS_OK;
}

static tess_status describe(reconstruct_job *job, tess_memory *memory, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    TESS_TRY(tess_problem_describe(memory, s, &job->problem, error));
    TESS_TRY(tess_detector_grid_choose(&job->problem, error));
    const tess_problem *p = &job->problem;
    if (p->detector_grid)
        tess_note(&s->common, TESS_NOTE_DETAIL,
                  "%s: views of %lld x %lld pixels are resampled to %lld x %lld, so that rows lie before "
                  "slices and pixels are not smaller than voxels; \"resample\": false keeps them",
                  p->measurement, (long long)p->file_rows, (long long)p->file_columns, (long long)p->rows,
                  (long long)p->columns);
    if (p->bare_integers)
        tess_note(
            &s->common, TESS_NOTE_WARNING,
            "%s: its integers are taken as line integrals; raw counts need \"flat\" (and \"dark\") in %s",
            p->measurement, p->name);
    TESS_TRY(check_record(p, &s->common, error));
    TESS_TRY(tess_recipe_of(s, &job->problem, &job->recipe, error));
    TESS_TRY(tess_choice_open(&job->engine, memory, &s->common, error));
    TESS_TRY(find_model(job, error));
    TESS_TRY(tess_reconstruct_choose(&job->engine, s, &job->problem, &job->recipe, &job->prior, error));
    const char *const weights = job->prior.model->path;
    TESS_TRY(tess_record_apart(&s->common, &weights, 1, error));
    const char *used[] = {s->output, s->side_by_side, s->save_measurement};
    for (int i = 0; i < 3; i++)
        if (used[i])
            TESS_TRY(tess_image_load_library(used[i], error));
    for (int i = 0; i < 3; i++) /* reported by the plan and, before any work, by the run */
        if (used[i])
            TESS_TRY(tess_writer_check_folder(used[i], error));
    tess_process_reset_peak();
    tess_memory_reset_peak(memory);
    job->usage.overhead = tess_process_resident();
    return TESS_OK;
}

/* Matter outside of a volume; for images problem.c says it. */
static void warn_outside(const tess_problem *p, const tess_common *common)
{
    if (p->physics != TESS_PHYSICS_CONE || !(p->outside > 0))
        return;
    const long long d = p->needed[0], h = p->needed[1], w = p->needed[2];
    char what[192];
    snprintf(what, sizeof what,
             tess_problem_enlarged(p)
                 ? "%lld x %lld x %lld are computed and cropped: \"volume\": [%lld, %lld, %lld] shows all"
                 : "what they see disturbs the result; a volume of %lld x %lld x %lld holds it: \"volume\": "
                   "[%lld, %lld, %lld]",
             d, h, w, d, h, w);
    tess_note(common, TESS_NOTE_WARNING,
              "%s: rays that miss a volume of %lld x %lld x %lld hold up to %.0f %% of the largest; %s",
              p->measurement, (long long)p->depth, (long long)p->height, (long long)p->width,
              100 * p->outside, what);
}

static tess_status plan(reconstruct_job *job, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
    job->workspace.engine = &job->engine;
    job->outputs = (tess_outputs){.result = s->output,
                                  .side_by_side = s->side_by_side,
                                  .measurement = s->save_measurement,
                                  .problem = &job->problem,
                                  .memory = job->engine.memory};
    tess_planning planning = {.settings = s,
                              .problem = &job->problem,
                              .recipe = &job->recipe,
                              .prior = &job->prior,
                              .workspace = &job->workspace,
                              .budget = &job->budget};
    TESS_TRY(tess_outputs_check(&job->outputs, &planning.held, error));
    tess_status status = tess_reconstruct_plan(&planning, error);
    tess_problem *p = &job->problem;
    if (status == TESS_OVER_LIMIT && p->physics == TESS_PHYSICS_CONE && tess_problem_enlarged(p)) {
        p->margin_depth = p->margin[0] = p->margin[1] = 0; /* the larger volume does not fit */
        status = tess_reconstruct_plan(&planning, error);
    }
    if (status == TESS_OK)
        warn_outside(p, &s->common);
    return status;
}

static void warn_truncated(const tess_problem *p, const tess_common *common)
{
    const bool columns = p->edge >= p->edge_rows;
    if (tess_problem_truncated(p) && p->physics == TESS_PHYSICS_CONE)
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: its outer %s hold %.0f %% of the largest, so that the object is %s than the detector; "
                  "\"volume\" must be as large as the object, and what only some views see is uncertain",
                  p->measurement, columns ? "columns" : "rows", 100 * fmax(p->edge, p->edge_rows),
                  columns ? "wider" : "higher");
    else if (tess_problem_truncated(p) && p->width + 2 * p->margin[1] <= p->columns + 2)
        tess_note(common, TESS_NOTE_WARNING,
                  "%s: its outer columns hold %.0f %% of the largest; if the object is wider than the "
                  "detector, give a \"size\" that is as wide as the object, such as %lld",
                  p->measurement, 100 * p->edge, (long long)(p->columns + tess_ceil_div(p->columns, 4)));
}

/* Fills truth and measurements. A truth from a file is read when the range is known, because it is scaled to it. */
static tess_status fill(reconstruct_job *job, tess_error *error)
{
    tess_workspace *w = &job->workspace;
    tess_problem *p = &job->problem;
    const tess_common *common = &job->settings->common;
    if (w->host.truth && p->synthetic)
        TESS_TRY(tess_problem_truth(p, w, error));
    TESS_TRY(tess_problem_measure(p, w, job->recipe.noise, common->seed, error));
    TESS_TRY(tess_stop_check(&job->engine.stop, error));
    warn_truncated(p, common);
    TESS_TRY(tess_problem_find_range(p, &job->recipe, w, common, error));
    if (w->host.truth && !p->synthetic)
        TESS_TRY(tess_problem_truth(p, w, error));
    return job->settings->save_measurement ? tess_outputs_save_measurement(&job->outputs, w, error) : TESS_OK;
}

static tess_status solve(reconstruct_job *job, tess_error *error)
{
    const tess_judge judge = {&job->problem, &job->workspace, job->recipe.saturating_psnr};
    tess_solving solving = {.judge = &judge,
                            .recipe = &job->recipe,
                            .max_seconds = job->settings->max_seconds,
                            .tolerance = job->settings->tolerance,
                            .prior = &job->prior,
                            .usage = &job->usage,
                            .outcome = &job->outcome};
    const double start = tess_clock();
    tess_stop_begin(&job->engine.stop, job->recipe.iterations * tess_workspace_pixels(&job->workspace));
    TESS_TRY(tess_reconstruct_begin(&judge, &job->recipe, job->settings->common.seed, &job->start, error));
    job->outcome.seconds = tess_clock() - start;
    solving.norm_squared = job->start.norm_squared;
    tess_budget_keep_peak(&job->budget, &job->engine); /* the loop counts from zero */
    TESS_TRY(tess_reconstruct_solve(&solving, error));
    return tess_problem_doubt_range(&job->problem, &job->workspace, &job->settings->common, error);
}

static tess_status run(reconstruct_job *job, tess_error *error)
{
    tess_stop *stop = &job->engine.stop;
    TESS_TRY(tess_outcome_begin(&job->outcome, job->recipe.iterations, error));
    tess_usage_begin(&job->usage, &job->engine);
    TESS_TRY(tess_outputs_open(&job->outputs, error));
    tess_outputs_doubts(&job->outputs, &job->settings->common);
    TESS_TRY(tess_workspace_take(&job->workspace, error));
    tess_usage_look(&job->usage, job->engine.device);
    TESS_TRY(fill(job, error));
    TESS_TRY(solve(job, error));
    TESS_TRY(tess_stop_check(stop, error)); /* results of an interrupted run are not kept */
    TESS_TRY(tess_outputs_write(&job->outputs, &job->workspace, error));
    tess_stop_end(stop);
    return TESS_OK;
}

/* The fastest iteration gives the operator's rate: in others the machine was shared. */
static void calibrate(reconstruct_job *job)
{
    double best = INFINITY;
    for (int64_t i = 0; i < job->outcome.result.iterations; i++)
        best = fmin(best, job->outcome.iterations[i].gradient_seconds);
    tess_physics_keep_rate(&job->engine, job->workspace.op, &job->recipe, best);
    tess_reconstruct_learn(&job->prior, &job->budget, tess_clock() - job->usage.start, job->outcome.seconds);
}

static void close_job(reconstruct_job *job)
{
    tess_outputs_close(&job->outputs);
    tess_prior_close(&job->prior);
    tess_workspace_close(&job->workspace);
    tess_engine_close(&job->engine);
    tess_problem_clear(&job->problem);
    tess_outcome_clear(&job->outcome);
}

static tess_json *record_of(const reconstruct_job *job, bool ran)
{
    const tess_problem *p = &job->problem;
    const tess_outcome *outcome = &job->outcome;
    const tess_record_own own = {.preset = job->settings->preset,
                                 .problem = p,
                                 .recipe = &job->recipe,
                                 .op = job->workspace.op,
                                 .model = job->prior.model,
                                 .start = ran ? &job->start : NULL,
                                 .outcome = ran ? outcome : NULL};
    tess_json *record = tess_record_begin(ran ? "reconstruct" : "plan", &job->engine);
    if (!ran)
        tess_json_set_string(&record, "verb", "reconstruct");
    tess_record_add_input(&record, p);
    const tess_record_path paths[] = {{"output", job->settings->output}, {"image", job->settings->image}};
    tess_record_paths(&record, paths, sizeof paths / sizeof paths[0]);
    tess_record_add_plan(&record, &job->prior, &job->workspace, &job->budget);
    if (ran)
        tess_record_add_measured(&record, &job->engine, &job->budget, outcome, &job->usage,
                                 (double)(tess_problem_rows(p) * p->width));
    if (ran && !isnan(outcome->psnr)) {
        tess_json *quality = tess_json_object();
        tess_record_set_known(&quality, "psnr_db", outcome->psnr);
        tess_record_set_known(&quality, "ssim", outcome->ssim);
        tess_json_set(&record, "quality", quality);
    }
    tess_record_add_own(&record, &own);
    if (outcome->interrupted)
        tess_json_set_bool(&record, "interrupted", true);
    return record;
}

/* Records what was done before the caller stopped the job. */
static tess_status record_of_stopped(reconstruct_job *job, char **record, tess_error *error)
{
    job->outcome.interrupted = true;
    job->outcome.result.iterations = job->outcome.done;
    tess_json *done = job->outcome.iterations ? record_of(job, true) : NULL;
    if (!done) { /* stopped before the plan was complete */
        done = tess_record_begin("reconstruct", NULL);
        tess_json_set_bool(&done, "interrupted", true);
    }
    TESS_TRY(tess_record_end(done, record, error));
    return TESS_INTERRUPTED;
}

static tess_status reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                               bool plan_only, char **record)
{
    tess_error *error = &context->error;
    *record = NULL;
    TESS_TRY(tess_context_alone(context, "reconstruct"));
    TESS_TRY(tess_reconstruct_check(settings, error));
    reconstruct_job job;
    memset(&job, 0, sizeof job);
    job.settings = settings;
    job.usage.start = tess_clock();
    job.start.baseline_psnr = job.outcome.psnr = job.outcome.ssim = NAN;
    tess_status status = describe(&job, &context->memory, error);
    if (status == TESS_OK)
        status = plan(&job, error);
    if (status == TESS_OK && !plan_only)
        status = run(&job, error);
    /* the error may come from unfinished values */
    if (status != TESS_OK && tess_stop_wanted(&job.engine.stop))
        status = tess_fail(error, TESS_INTERRUPTED, "stopped; no half-written output is left");
    if (status == TESS_INTERRUPTED && !plan_only)
        status = record_of_stopped(&job, record, error);
    if (status == TESS_OK)
        status = tess_record_end(record_of(&job, !plan_only), record, error);
    if (status == TESS_OK && !plan_only)
        calibrate(&job);
    close_job(&job);
    return status;
}

tess_status tess_reconstruct(tess_context *context, const tess_reconstruct_settings *settings, char **record)
{
    return reconstruct(context, settings, false, record);
}

tess_status tess_plan_reconstruct(tess_context *context, const tess_reconstruct_settings *settings,
                                  char **record)
{
    return reconstruct(context, settings, true, record);
}
