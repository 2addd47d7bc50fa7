/* The reconstruct job: describe the problem, plan, run, record. Only this file uses all parts. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "job/common/note.h"
#include "job/common/record.h"
#include "job/common/voice.h"
#include "job/reconstruct/look/range.h"
#include "job/reconstruct/plan/choose.h"
#include "job/reconstruct/plan/rates.h"
#include "job/reconstruct/problem/data.h"
#include "job/reconstruct/reconstruct_impl.h"
#include "job/reconstruct/run/settle.h"
#include "job/reconstruct/scan/background.h"
#include "job/reconstruct/scan/fit.h"
#include "job/reconstruct/scan/rim.h"
#include "job/reconstruct/scan/rings.h"

static const double MANY_STARVED = 0.001; /* share of the rays without a count that is worth a note */

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
              "%s: rays that miss a volume of %lld x %lld x %lld, or hardly meet it, hold up to %.0f %% of "
              "the largest; %s",
              p->measurement, (long long)p->depth, (long long)p->height, (long long)p->width,
              100 * p->outside, what);
}

static tess_status plan(tess_reconstruct_job *job, tess_error *error)
{
    const tess_reconstruct_settings *s = job->settings;
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
    if (job->engine.dist->rank > 0)
        planning.held = (tess_outputs_held){0}; /* rank 0 writes */
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
    if (p->transmission || tess_background_note(p, common))
        return; /* that is said */
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

/* Rays without a count: what they are given is a guess. */
static void warn_starved(const tess_problem *p, const tess_common *common)
{
    const double share = tess_problem_starved_share(p);
    char given[64] = "1/10,000 of the light";
    if (p->count_unit > 0 && !p->dark && p->dark_value == 0)
        snprintf(given, sizeof given, "half a count (%.4g)", 0.5 * p->count_unit);
    else if (p->count_unit > 0)
        snprintf(given, sizeof given, "1/10,000 of the light, at least half a count");
    if (p->starved > 0)
        tess_note(common, share > MANY_STARVED ? TESS_NOTE_WARNING : TESS_NOTE_DETAIL,
                  "%s: %.2g %% of the rays have no count; they are taken to have %s", p->measurement,
                  100 * share, given);
}

/* Fills truth and measurements. A truth from a file is read when the range is known, because it is scaled to it. */
static tess_status fill(tess_reconstruct_job *job, tess_error *error)
{
    tess_workspace *w = &job->workspace;
    tess_problem *p = &job->problem;
    const tess_common *common = &job->settings->common;
    tess_status status = TESS_OK;
    if (w->host.truth && p->synthetic)
        status = tess_problem_truth(p, w, error);
    TESS_TRY(tess_share_agree(p->share, status, error));
    status = tess_problem_measure(p, w, job->recipe.noise, common->seed, error);
    if (status == TESS_OK)
        status = tess_stop_check(&job->engine.stop, error);
    TESS_TRY(tess_share_agree(p->share, status, error));
    warn_truncated(p, common);
    warn_starved(p, common);
    TESS_TRY(tess_problem_find_range(p, &job->recipe, w, common, error));
    if (w->host.truth && !p->synthetic)
        TESS_TRY(tess_problem_truth(p, w, error));
    return job->settings->save_measurement ? tess_outputs_save_measurement(&job->outputs, w, error) : TESS_OK;
}

/* Data that no picture explains. */
static tess_status warn_misfit(tess_reconstruct_job *job, tess_error *error)
{
    const tess_outcome *outcome = &job->outcome;
    const tess_problem *p = &job->problem;
    const tess_common *common = &job->settings->common;
    double at_end = 0;
    if (outcome->rim > 0)
        tess_scan_rim_note(p, outcome->rim, common);
    if (!(outcome->misfit > 0))
        return TESS_OK;
    if (p->physics != TESS_PHYSICS_BLUR) {
        tess_scan_misfit_note(p, outcome->misfit, common);
        return TESS_OK;
    }
    TESS_TRY(tess_problem_at_end(p, &job->workspace, &at_end, error));
    tess_fit_note(p, outcome->misfit, outcome->raised, at_end, common);
    return TESS_OK;
}

static tess_status solve(tess_reconstruct_job *job, tess_error *error)
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
    tess_share *share = job->problem.share;
    tess_stop_begin(&job->engine.stop, job->recipe.iterations * (tess_workspace_all_values(&job->workspace) /
                                                                 job->problem.channels));
    TESS_TRY(tess_share_agree(
        share, tess_reconstruct_begin(&judge, &job->recipe, job->settings->common.seed, &job->start, error),
        error));
    job->outcome.seconds = tess_clock() - start;
    solving.norm_squared = job->start.norm_squared;
    tess_budget_keep_peak(&job->budget, &job->engine); /* the loop counts from zero */
    TESS_TRY(tess_reconstruct_solve(&solving, error));
    TESS_TRY(tess_scan_judge(&job->problem, &job->recipe, &job->workspace, &job->outcome, error));
    TESS_TRY(warn_misfit(job, error));
    tess_rings_note(&job->problem, job->outcome.rings, !(job->outcome.misfit > 0), &job->settings->common);
    return tess_problem_doubt_range(&job->problem, &job->workspace, &job->settings->common, error);
}

static tess_status prepare(tess_reconstruct_job *job, tess_error *error)
{
    TESS_TRY(tess_outcome_begin(&job->outcome, job->recipe.iterations, error));
    tess_usage_begin(&job->usage, &job->engine);
    TESS_TRY(tess_outputs_open(&job->outputs, error));
    tess_outputs_doubts(&job->outputs, &job->settings->common);
    TESS_TRY(tess_workspace_take(&job->workspace, error));
    tess_usage_look(&job->usage, job->engine.device);
    return TESS_OK;
}

static tess_status run(tess_reconstruct_job *job, tess_error *error)
{
    tess_stop *stop = &job->engine.stop;
    tess_share *share = job->problem.share;
    TESS_TRY(tess_share_agree(share, prepare(job, error), error));
    TESS_TRY(fill(job, error));
    TESS_TRY(solve(job, error));
    TESS_TRY(tess_share_agree(share, tess_stop_check(stop, error),
                              error)); /* results of an interrupted run are not kept */
    TESS_TRY(tess_outputs_write(&job->outputs, &job->workspace, error));
    tess_stop_end(stop);
    return TESS_OK;
}

/* The fastest iteration gives the operator's rate: in others the machine was shared. */
static void calibrate(tess_reconstruct_job *job)
{
    double best = INFINITY;
    for (int64_t i = 0; i < job->outcome.result.iterations; i++)
        best = fmin(best, job->outcome.iterations[i].gradient_seconds);
    tess_physics_keep_rate(&job->engine, job->workspace.op, &job->recipe, best);
    if (!(job->outcome.rings > 0)) /* they take iterations that are not planned */
        tess_reconstruct_learn(&job->prior, &job->budget, tess_clock() - job->usage.start,
                               job->outcome.seconds);
}

static void close_job(tess_reconstruct_job *job)
{
    tess_outputs_close(&job->outputs);
    tess_prior_close(&job->prior);
    tess_workspace_close(&job->workspace);
    tess_card_links_close(&job->links);
    tess_beside_close(&job->beside);
    tess_engine_close(&job->engine);
    tess_problem_clear(&job->problem);
    tess_parts_clear(&job->parts);
    tess_outcome_clear(&job->outcome);
}

static tess_json *record_of(const tess_reconstruct_job *job, bool ran)
{
    const tess_problem *p = &job->problem;
    const tess_outcome *outcome = &job->outcome;
    const tess_record_own own = {.preset = job->settings->preset,
                                 .problem = p,
                                 .recipe = &job->recipe,
                                 .op = job->workspace.op,
                                 .model = job->prior.model,
                                 .parts = &job->parts,
                                 .start = ran ? &job->start : NULL,
                                 .outcome = ran ? outcome : NULL};
    tess_json *record = tess_record_begin(ran ? "reconstruct" : "plan", &job->engine);
    if (!ran)
        tess_json_set_string(&record, "verb", "reconstruct");
    tess_record_add_input(&record, p);
    const tess_record_path paths[] = {{"output", job->settings->output}, {"image", job->settings->image}};
    tess_record_paths(&record, paths, sizeof paths / sizeof paths[0]);
    tess_record_add_plan(&record, &job->prior, &job->workspace, &job->budget, &job->elsewhere);
    if (ran)
        tess_record_add_measured(&record, &job->prior, &job->budget, outcome, &job->usage,
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
static tess_status record_of_stopped(tess_reconstruct_job *job, char **record, tess_error *error)
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

/* On all ranks; what they measured is shared first. */
static tess_status end_record(tess_reconstruct_job *job, bool ran, char **record, tess_error *error)
{
    tess_mem_usage peak = tess_record_peak(&job->engine, &job->budget, &job->outcome);
    if (ran) {
        job->links.bytes = tess_nccl_bytes(job->links.nccl);
        TESS_TRY(
            tess_parts_share_peak(&job->parts, &peak, job->outcome.result.sent, &job->links.bytes, error));
        tess_mem_usage_raise(&job->budget.peak, &peak);
    }
    return tess_record_end(record_of(job, ran), record, error);
}

static tess_status describe_and_plan(tess_reconstruct_job *job, tess_context *context, bool will_run,
                                     tess_error *error)
{
    TESS_TRY(tess_reconstruct_describe(job, context, will_run, error));
    tess_status status = tess_share_agree(job->problem.share, plan(job, error), error);
    if (status == TESS_OVER_LIMIT && job->problem.halo) { /* on all ranks, or on none */
        job->problem.halo = false;
        tess_parts_avoid_halo(&job->parts, &job->problem, &job->prior);
        status = tess_share_agree(job->problem.share, plan(job, error), error);
    }
    if (status == TESS_OVER_LIMIT && job->parts.by_speed) { /* the same */
        TESS_TRY(tess_parts_divide_equally(&job->parts, &job->problem, &job->prior, error));
        status = tess_share_agree(job->problem.share, plan(job, error), error);
    }
    TESS_TRY(status);
    if (tess_prior_in_strips(&job->prior)) /* that a strip is not cut says nothing */
        snprintf(job->prior.choice.reason, sizeof job->prior.choice.reason, "%s", job->parts.reason);
    return tess_parts_share_plan(&job->parts, &job->budget, error);
}

static tess_status reconstruct(tess_context *context, const tess_reconstruct_settings *given, bool plan_only,
                               char **record)
{
    tess_error *error = &context->error;
    tess_reconstruct_settings settings = *given;
    tess_voice voice;
    tess_reconstruct_job job;
    *record = NULL;
    memset(&job, 0, sizeof job);
    job.settings = &settings;
    job.usage.start = tess_clock();
    job.start.baseline_psnr = job.outcome.psnr = job.outcome.ssim = NAN;
    tess_voice_begin(&voice, context->dist, &settings.common);
    tess_stop_init(&job.before, settings.common.progress, settings.common.progress_user);
    tess_status status = tess_elsewhere_check(settings.machine, settings.ranks, plan_only, error);
    if (status == TESS_OK)
        status = describe_and_plan(&job, context, !plan_only, error);
    if (status == TESS_OK && plan_only)
        status = tess_dist_agree(context->dist, tess_reconstruct_elsewhere(&job, error), error);
    if (status == TESS_OK && !plan_only)
        status = run(&job, error);
    /* the error may come from unfinished values */
    if (status != TESS_OK && (tess_stop_wanted(&job.before) || tess_stop_wanted(&job.engine.stop)))
        status = tess_fail(error, TESS_INTERRUPTED, "stopped; no half-written output is left");
    if (status == TESS_INTERRUPTED && !plan_only)
        status = record_of_stopped(&job, record, error);
    if (status == TESS_OK)
        status = tess_dist_agree(context->dist, end_record(&job, !plan_only, record, error), error);
    if (status == TESS_OK && !plan_only && context->dist->size == 1)
        calibrate(&job); /* ranks that share a host would disturb each other */
    close_job(&job);
    tess_voice_end(&voice);
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
