/* The reconstruct job on arrays: the same steps, with the caller's measurements and result in place of files. */
#include <math.h>
#include <string.h>

#include "job/library/reconstructor.h"
#include "job/reconstruct/look/range.h"
#include "job/reconstruct/plan/margins.h"
#include "job/reconstruct/plan/plan.h"
#include "job/reconstruct/run/begin.h"
#include "job/reconstruct/run/run.h"

struct tess_reconstructor {
    tess_model *model;
    tess_sample_type type;
    tess_reconstruct_settings settings;
    tess_problem problem;
    tess_recipe recipe;
    tess_prior prior;
    tess_workspace workspace;
    tess_budget budget;
};

void tess_reconstructor_settings_fill(tess_reconstructor_settings *settings, size_t size)
{
    const tess_reconstructor_settings usual = {.depth = 1,
                                               .channels = 1,
                                               .element = TESS_ELEMENT_F32,
                                               .centre = -1,
                                               .spacing = 1,
                                               .noise = -1,
                                               .sigma = -1,
                                               .last_sigma = -1,
                                               .step = -1,
                                               .relax = -1,
                                               .inner = -1,
                                               .halo = TESS_HALO_AUTO};
    tess_struct_give(settings, size, &usual, sizeof usual);
}

/* The job's settings, without those of files. */
static tess_reconstruct_settings job_settings(const tess_reconstructor_settings *s)
{
    tess_reconstruct_settings job;
    tess_reconstruct_settings_init(&job);
    job.output = job.problem = "";
    job.preset = s->preset && strcmp(s->preset, "deepinv") == 0 ? "deepinv" : NULL;
    job.iterations = s->iterations;
    job.sigma = s->sigma;
    job.last_sigma = s->last_sigma;
    job.step = s->step;
    job.relax = s->relax;
    job.inner = s->inner;
    job.tolerance = s->tolerance;
    job.max_seconds = s->max_seconds;
    job.tile_depth = s->tile_depth;
    job.tile_height = s->tile_height;
    job.tile_width = s->tile_width;
    job.halo = s->halo;
    job.batch = s->batch;
    job.common.seed = s->seed;
    job.common.memory_limit = s->memory_limit;
    return job;
}

static tess_status check_model(const tess_reconstructor *r, tess_error *error)
{
    const tess_model_net *net = &r->model->loaded.model;
    if (net->channels != 1 && net->channels != r->problem.channels)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "the model takes %lld channel(s), the result has %lld; use a model for as many, or one "
            "for 1",
            (long long)net->channels, (long long)r->problem.channels);
    if (net->volume && r->problem.depth == 1)
        return tess_fail(error, TESS_BAD_OPTION, "the model takes volumes, the result is an image");
    return TESS_OK;
}

static tess_status make_plan(tess_reconstructor *r, const tess_reconstructor_settings *s, tess_error *error)
{
    tess_engine *engine = &r->model->opened->engine;
    if (s->preset && strcmp(s->preset, "default") != 0 && strcmp(s->preset, "deepinv") != 0)
        return tess_fail(error, TESS_BAD_OPTION, "preset %s: use default or deepinv", s->preset);
    r->settings = job_settings(s);
    TESS_TRY(tess_reconstruct_check(&r->settings, error));
    TESS_TRY(tess_reconstructor_problem(s, &r->problem, error));
    tess_element_dtype(s->element, &r->type.dtype);
    r->type.scale = (tess_scale){0, 1}; /* values are not scaled */
    r->type.plain = tess_samples_full_scale(r->type.dtype) == 1;
    tess_problem_choose_unit(&r->settings, &r->problem);
    r->settings.init = s->init; /* used now and not kept */
    const tess_status status = tess_recipe_of(&r->settings, &r->problem, &r->recipe, error);
    r->settings.init = NULL;
    TESS_TRY(status);
    r->recipe.volume = r->model->loaded.model.volume;
    TESS_TRY(check_model(r, error));
    r->prior.engine = r->workspace.engine = engine;
    r->workspace.device = engine->device;
    r->workspace.rates = engine->rates;
    r->prior.model = &r->model->loaded;
    engine->device->facts(engine->device, &engine->facts); /* updates the free memory */
    const tess_planning planning = {.settings = &r->settings,
                                    .problem = &r->problem,
                                    .recipe = &r->recipe,
                                    .weight_bytes = r->model->loaded.weights.bytes,
                                    .prior = &r->prior,
                                    .workspace = &r->workspace,
                                    .budget = &r->budget};
    return tess_reconstruct_plan(&planning, error);
}

tess_status tess_reconstructor_plan(tess_model *model, const tess_reconstructor_settings *settings,
                                    tess_reconstructor **out)
{
    if (out)
        *out = NULL;
    if (!model)
        return TESS_BAD_OPTION;
    tess_error *error = tess_model_error(model);
    tess_reconstructor_settings s;
    tess_reconstructor_settings_init(&s);
    if (!out || !settings || !tess_struct_take(&s, sizeof s, settings))
        return tess_fail(error, TESS_BAD_OPTION,
                         "tess_reconstructor_plan: `out` and settings are needed; fill these with "
                         "tess_reconstructor_settings_init");
    tess_reconstructor *r = tess_small_alloc(1, sizeof *r);
    if (!r)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a plan");
    r->model = model;
    const tess_status status = make_plan(r, &s, error);
    if (status != TESS_OK) {
        tess_reconstructor_release(r);
        return status;
    }
    *out = r;
    return TESS_OK;
}

void tess_reconstructor_release(tess_reconstructor *r)
{
    if (!r)
        return;
    tess_prior_close(&r->prior);
    tess_workspace_close(&r->workspace);
    tess_problem_clear(&r->problem);
    tess_small_free(r);
}

void tess_reconstructor_bytes(const tess_reconstructor *r, tess_bytes *bytes)
{
    tess_bytes answer;
    tess_bytes_init(&answer);
    if (!bytes)
        return;
    if (r) {
        answer.weights = r->budget.planned.bytes.by[TESS_MEM_WEIGHTS];
        answer.activations = r->budget.planned.bytes.by[TESS_MEM_ACTIVATIONS];
        answer.workspace = r->budget.planned.bytes.by[TESS_MEM_WORKSPACE];
        answer.io = r->budget.planned.bytes.by[TESS_MEM_IO];
        answer.total = r->budget.planned.total;
        answer.host = r->budget.planned.bytes.by[TESS_MEM_HOST];
    }
    tess_bytes_give(&answer, bytes);
}

double tess_reconstructor_seconds(const tess_reconstructor *r)
{
    return r ? r->budget.seconds : 0;
}

/* Checks an array of the caller against these sizes. */
static tess_status take_image(const tess_reconstructor *r, const tess_image *image, const char *name,
                              const int64_t sizes[4], tess_strided *out, tess_error *error)
{
    tess_image own;
    tess_image_init(&own, NULL, TESS_ELEMENT_F32, 1, 1, 1);
    tess_dtype dtype;
    if (!image || !tess_struct_take(&own, sizeof own, image) || !own.data)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "tess_reconstructor_run: `%s` is no image; fill it with tess_image_init, and give it "
            "data",
            name);
    if (own.depth != sizes[0] || own.height != sizes[1] || own.width != sizes[2] ||
        own.channels != sizes[3] || !tess_element_dtype(own.element, &dtype) || dtype != r->type.dtype)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "tess_reconstructor_run: `%s` must be %lld x %lld x %lld with %lld channel(s), of the "
            "planned element type",
            name, (long long)sizes[0], (long long)sizes[1], (long long)sizes[2], (long long)sizes[3]);
    if (own.on_device)
        return tess_fail(error, TESS_UNSUPPORTED, "tess_reconstructor_run: `%s` must be on the host", name);
    *out = tess_strided_of(&own, r->type);
    return TESS_OK;
}

/* Copies the rows to the device, in the units of the solver. */
static tess_status fill(tess_workspace *w, const tess_problem *p, const tess_strided *in, tess_error *error)
{
    tess_device *device = w->engine->device;
    const int64_t samples = in->width * in->channels;
    const float unit = (float)(p->physics == TESS_PHYSICS_BLUR ? p->unit : tess_problem_measured_unit(p));
    float *row = w->host.rows[0];
    for (int64_t y = 0; y < in->depth * in->height; y++) {
        const tess_run_of_pixels run = {
            .z = y / in->height, .y = y % in->height, .count = in->width, .channels = in->channels};
        tess_strided_read(in, &run, row, in->channels);
        for (int64_t i = 0; i < samples; i++) {
            row[i] = (float)((double)row[i] - p->offset) / unit;
            if (!isfinite(row[i]))
                return tess_fail(
                    error, TESS_BAD_INPUT,
                    "the measurements hold something that is no number, or too large for the range, "
                    "in row %lld, column %lld",
                    (long long)y, (long long)(i / in->channels));
        }
        device->memory->copy(device, (float *)w->measurement.data + y * samples, row,
                             (size_t)samples * sizeof *row, NULL);
        TESS_TRY(device->streams->sync(device, NULL, error));
    }
    return TESS_OK;
}

static tess_status take_result(tess_workspace *w, const tess_problem *p, const tess_strided *out,
                               tess_error *error)
{
    float *row = w->host.rows[0];
    for (int64_t y = 0; y < tess_problem_rows(p); y++) {
        TESS_TRY(tess_margins_rows(w, p, w->vectors[0], y, 1, row, error));
        tess_problem_to_units(p, tess_problem_row(p), row);
        const tess_run_of_pixels run = {
            .z = y / p->height, .y = y % p->height, .count = p->width, .channels = p->channels};
        tess_strided_write(out, &run, row, p->channels);
    }
    return TESS_OK;
}

/* The problem and the recipe are completed from the measurements, so each run has its own copies. */
static tess_status run(tess_reconstructor *r, const tess_strided *in, const tess_strided *out,
                       tess_error *error)
{
    tess_workspace *w = &r->workspace;
    tess_problem problem = r->problem;
    tess_recipe recipe = r->recipe;
    tess_usage usage = {0};
    tess_outcome outcome = {0};
    tess_start start = {0};
    const tess_judge judge = {&problem, w, recipe.saturating_psnr};
    tess_solving solving = {.judge = &judge,
                            .recipe = &recipe,
                            .max_seconds = r->settings.max_seconds,
                            .tolerance = r->settings.tolerance,
                            .prior = &r->prior,
                            .usage = &usage,
                            .outcome = &outcome};
    tess_status status = tess_outcome_begin(&outcome, recipe.iterations, error);
    if (status == TESS_OK)
        status = tess_workspace_take(w, error);
    if (status == TESS_OK)
        status = fill(w, &problem, in, error);
    if (status == TESS_OK)
        status = tess_problem_find_range(&problem, &recipe, w, &r->settings.common, error);
    tess_stop_begin(&w->engine->stop, recipe.iterations * tess_workspace_pixels(w));
    if (status == TESS_OK)
        status = tess_reconstruct_begin(&judge, &recipe, r->settings.common.seed, &start, error);
    solving.norm_squared = start.norm_squared;
    if (status == TESS_OK)
        status = tess_reconstruct_solve(&solving, error);
    if (status == TESS_OK)
        status = take_result(w, &problem, out, error);
    tess_prior_close(&r->prior);
    tess_workspace_release(w);
    tess_outcome_clear(&outcome);
    if (problem.weights != r->problem.weights) /* found in these measurements */
        tess_small_free(problem.weights);
    if (problem.gains != r->problem.gains)
        tess_small_free(problem.gains);
    return status;
}

tess_status tess_reconstructor_run(tess_reconstructor *r, const tess_image *measurements,
                                   const tess_image *out)
{
    if (!r)
        return TESS_BAD_OPTION;
    tess_error *error = tess_model_error(r->model);
    const tess_problem *p = &r->problem;
    int64_t sizes[4];
    tess_strided from, to;
    tess_reconstructor_extent(p, sizes);
    TESS_TRY(take_image(r, measurements, "measurements", sizes, &from, error));
    TESS_TRY(
        take_image(r, out, "out", (const int64_t[]){p->depth, p->height, p->width, p->channels}, &to, error));
    return run(r, &from, &to, error);
}
