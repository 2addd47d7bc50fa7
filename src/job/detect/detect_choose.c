/* detect_choose.c: the work of the two phases, statistics and scores; which device each should use; and what a run teaches.
 *
 * What the host does in any case (reading, paths through nodes that are not affine, solving, writing scores, decisions) has
 * classes of its own, learned from runs. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "job/common/choice.h"
#include "job/detect/detect_job.h"

enum { NAME = TESS_RATES_CLASS };
static const double CALIBRATION_SECONDS = 1; /* what is left over is measured after the next run */

/* Names of classes that depend on the job. */
typedef struct names {
    char read[NAME], path[NAME], solve[NAME], sink[NAME], decide[NAME];
} names;

/* The letters that the kinds of the nodes begin with: pipelines differ in what the host does for a pixel. */
static void spell_pipeline(const tess_spectral_plan *plan, char text[NAME / 2])
{
    const tess_pipeline *pipeline = &plan->pipeline;
    size_t used = 0;
    for (int i = 0; i < pipeline->count && used + 4 < NAME / 2; i++)
        used += (size_t)snprintf(text + used, NAME / 2 - used, "%.2s%d",
                                 tess_node_kinds[pipeline->nodes[i].kind].name,
                                 (int)tess_node_scope_of(&pipeline->nodes[i]));
}

static names names_of(const tess_detect_job *job)
{
    const tess_detect_settings *s = job->settings;
    const char *path = job->input.list.entries[0].path, *point = strrchr(path, '.');
    const char *truth = s->truth ? "+truth" : "";
    char pipeline[NAME / 2] = "";
    names n;
    spell_pipeline(job->plan, pipeline);
    snprintf(n.path, sizeof n.path, "path %s", pipeline);
    snprintf(n.read, sizeof n.read, "read %.16s", point ? point : "");
    snprintf(n.solve, sizeof n.solve, "solve %s %d", pipeline, job->plan->bands);
    snprintf(n.sink, sizeof n.sink, "scores%s%s", truth, job->decides ? "+kept" : "");
    snprintf(n.decide, sizeof n.decide, "decide%s%s%s", truth, s->detections ? "+list" : "",
             s->overlay ? "+overlay" : "");
    return n;
}

typedef struct adding {
    tess_work *work;
    tess_work_phase *phase;
    const tess_rates *rates;
} adding;

static void add_op(void *user, const tess_op *op, double runs)
{
    const adding *a = user;
    tess_work_add_op(a->work, a->phase, a->rates, op, false, runs);
}

static void add_host(const adding *a, tess_work_kind kind, const char *name, tess_op_amount amount)
{
    tess_work_item item = {.kind = kind, .amount = amount};
    snprintf(item.op_class, sizeof item.op_class, "%s", name);
    if (amount.pixels > 0 || amount.runs > 0)
        tess_work_add(a->work, a->phase, &item);
}

/* Operations and bytes are guesses, for classes that no run has taught yet. */
static void add_phase(const tess_detect_job *job, const tess_pixel_set *set, bool fit, tess_work *work)
{
    const names n = names_of(job);
    adding a = {.work = work, .rates = job->engine.rates};
    a.phase = tess_work_begin(work, "detect", fit ? "statistics" : "scores");
    tess_statistics_work w = {.user = &a, .op = add_op};
    tess_statistics_list(&job->stage, job->plan, set, fit, &w);
    const double c = job->plan->bands, solving = 2e3 * w.solves * c * c * c;
    add_host(&a, TESS_WORK_READ, n.read, (tess_op_amount){0, w.bytes_read, 0, 4 * w.bytes_read});
    add_host(&a, TESS_WORK_HOST, n.path, (tess_op_amount){0, w.path_values, 50 * w.path_values, 0});
    add_host(&a, TESS_WORK_HOST, n.solve, (tess_op_amount){w.solves, 0, solving, 0});
    if (!fit) {
        add_host(&a, TESS_WORK_HOST, n.sink, (tess_op_amount){0, w.scored, 0, 40 * w.scored});
        if (job->decides || tess_detect_rates(job))
            add_host(&a, TESS_WORK_HOST, n.decide, (tess_op_amount){0, w.scored, 0, 200 * w.scored});
    }
    a.phase->up = w.bytes_up;
    a.phase->down = w.bytes_down;
    a.phase->copies = a.phase->pieces = w.blocks;
}

/* The first phase uses the blocks for the first time. */
static tess_status add_fresh(const tess_detect_job *job, tess_work *work, tess_error *error)
{
    tess_pixel_stage_sizes sizes;
    tess_mem_bytes bytes = {{0}};
    const adding a = {.work = work, .phase = &work->phase[0]};
    TESS_TRY(tess_pixel_stage_plan(&job->stage, job->plan, &job->all, &sizes, error));
    tess_pixel_stage_bytes(&job->stage, &sizes, &bytes);
    const double all = (double)tess_mem_total(&bytes) + (double)bytes.by[TESS_MEM_HOST];
    add_host(&a, TESS_WORK_HOST, TESS_COST_FRESH, (tess_op_amount){0, all, 0, 5 * all});
    return TESS_OK;
}

static const tess_pixel_set *fitted_set(const tess_detect_job *job)
{
    return job->fits_other ? &job->other.set : &job->input.set;
}

/* The CPU beside the card of the engine. */
static tess_status open_host(tess_detect_job *job, tess_error *error)
{
    const tess_device_options options = {.threads = tess_pool_threads(job->engine.host),
                                         .memory = job->engine.memory,
                                         .stop = &job->engine.stop};
    return tess_registry_open("cpu", &options, &job->host_device, error);
}

tess_status tess_detect_choose(tess_detect_job *job, tess_error *error)
{
    tess_work work = {0};
    tess_engine *engine = &job->engine;
    job->stage = (tess_pixel_stage_settings){.device = engine->device,
                                             .memory = engine->memory,
                                             .pool = engine->host,
                                             .stop = &engine->stop,
                                             .dist = engine->dist};
    if (job->fits)
        add_phase(job, fitted_set(job), true, &work);
    add_phase(job, &job->input.set, false, &work);
    tess_status status = tess_dist_agree(engine->dist, add_fresh(job, &work, error), error);
    if (status == TESS_OK)
        status = tess_choice_settle(engine, &job->settings->common, &work, error);
    tess_work_clear(&work);
    TESS_TRY(status);
    const bool fit_here = !job->fits || tess_choice_of_phase(engine, 0),
               score_here = tess_choice_of_phase(engine, job->fits);
    if (!fit_here || !score_here)
        TESS_TRY(tess_dist_agree(engine->dist, open_host(job, error), error));
    job->stage.device = score_here ? engine->device : job->host_device;
    job->fit_stage = job->stage;
    job->fit_stage.device = fit_here ? engine->device : job->host_device;
    return TESS_OK;
}

double tess_detect_predicted(const tess_detect_job *job, bool *calibrated)
{
    const tess_decision *d = &job->engine.choice.decision;
    double seconds = 0;
    *calibrated = true;
    for (int i = 0; i < d->phases; i++) {
        const tess_prediction *p = &d->device[d->chosen[i]];
        seconds += p->phase[i].seconds;
        *calibrated = *calibrated && p->phases_calibrated;
    }
    return seconds;
}

typedef struct measuring {
    tess_rates *rates;
    tess_rates_budget budget;
    double end;
} measuring;

static void measure_op(void *user, const tess_op *op, double runs)
{
    measuring *m = user;
    (void)runs;
    m->budget.seconds = m->end - tess_clock();
    if (m->budget.seconds > 0)
        (void)!tess_rates_measure_op(m->rates, op, m->budget, NULL);
}

static void learn_host(const tess_detect_job *job, const tess_statistics_report *r)
{
    static const double nothing = 1e-18;
    const names n = names_of(job);
    tess_rates *rates = job->engine.rates;
    if (r->bytes_read > 0)
        tess_rates_set(rates, n.read, 0, r->read_seconds / (double)r->bytes_read);
    if (r->path_values > 0)
        tess_rates_set(rates, n.path, 0, r->path_seconds / r->path_values);
    if (r->solves > 0)
        tess_rates_set(rates, n.solve, r->solve_seconds / r->solves, nothing);
    if (job->pixels > 0)
        tess_rates_set(rates, n.sink, 0, job->sink_seconds / (double)job->pixels);
    if (job->pixels > 0 && (job->decides || tess_detect_rates(job)))
        tess_rates_set(rates, n.decide, 0, job->decide_seconds / (double)job->pixels);
}

void tess_detect_learn(tess_detect_job *job, double wall)
{
    tess_engine *engine = &job->engine;
    const tess_statistics_report report = tess_statistics_facts(job->statistics);
    measuring m = {.rates = engine->rates,
                   .budget = {.bytes = (size_t)job->planned_total},
                   .end = tess_clock() + CALIBRATION_SECONDS};
    tess_statistics_work work = {.user = &m, .op = measure_op};
    tess_choice_run run = {.verb = "detect",
                           .wall = wall,
                           .seconds = job->fit_seconds + job->score_seconds + job->decide_seconds};
    run.planned = tess_detect_predicted(job, &run.calibrated);
    engine->stop.progress = NULL; /* the job was reported as done */
    if (engine->device->host_memory)
        learn_host(job, &report);
    tess_statistics_destroy(job->statistics);
    job->statistics = NULL;
    if (job->fits && job->fit_stage.device == engine->device)
        tess_statistics_list(&job->fit_stage, job->plan, fitted_set(job), true, &work);
    if (job->stage.device == engine->device)
        tess_statistics_list(&job->stage, job->plan, &job->input.set, false, &work);
    tess_choice_learn(engine, &run);
    (void)tess_rates_save(engine->rates, NULL);
}
