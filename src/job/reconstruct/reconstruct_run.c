#include "job/reconstruct/reconstruct_run.h"

#include <math.h>
#include <string.h>

#include "base/process.h"
#include "base/trace.h"

/* Weight of the measurements' noise against the prior's; the usual choice in half-quadratic splitting. */
static const double WEIGHT = 0.23;

void tess_usage_look(tess_usage *usage, tess_device *device)
{
    tess_device_facts facts;
    device->facts(device, &facts);
    if (facts.memory_free < usage->least_free)
        usage->least_free = facts.memory_free;
}

void tess_usage_begin(tess_usage *usage, const tess_engine *engine)
{
    tess_mem_usage held;
    tess_memory_reset_peak(engine->memory);
    tess_memory_held(engine->memory, tess_engine_scope(engine), &held);
    usage->least_free = UINT64_MAX;
    tess_usage_look(usage, engine->device);
    usage->free_before = usage->least_free + held.total;
}

tess_status tess_outcome_begin(tess_outcome *outcome, int64_t iterations, tess_error *error)
{
    outcome->iterations = tess_small_alloc((size_t)iterations, sizeof *outcome->iterations);
    return outcome->iterations
               ? TESS_OK
               : tess_fail(error, TESS_NO_MEMORY, "no memory for the record of %lld iterations",
                           (long long)iterations);
}

void tess_outcome_clear(tess_outcome *outcome)
{
    tess_small_free(outcome->iterations);
    outcome->iterations = NULL;
}

/* Reports `done` iterations; returns TESS_INTERRUPTED if the caller stops the job. */
static tess_status report(const tess_judge *judge, int64_t done, tess_error *error)
{
    tess_stop *stop = &judge->workspace->engine->stop;
    const int64_t pixels = tess_workspace_pixels(judge->workspace);
    tess_stop_add(stop, done * pixels - stop->done); /* the denoiser's windows have counted most of them */
    return tess_stop_check(stop, error);
}

static tess_status monitor(void *user, const tess_pnp_facts *facts, tess_error *error)
{
    const tess_solving *s = user;
    const tess_judge *judge = s->judge;
    tess_engine *engine = judge->workspace->engine;
    tess_iteration *it = &s->outcome->iterations[facts->iteration];
    *it = (tess_iteration){.gradient_seconds = facts->gradient_seconds,
                           .denoise_seconds = facts->denoise_seconds,
                           .step = facts->step,
                           .sigma = facts->sigma,
                           .change = facts->change,
                           .ssim = NAN,
                           .gradient_peak_bytes = facts->gradient_peak_bytes,
                           .denoise_peak_bytes = facts->denoise_peak_bytes};
    s->outcome->seconds += facts->gradient_seconds + facts->denoise_seconds;
    /* SSIM of a volume takes as long as an iteration, so it is computed once, at the end. */
    double *ssim = judge->problem->depth > 1 ? NULL : &it->ssim;
    TESS_TRY(tess_judge_image(judge, facts->x, &it->psnr, ssim, error));
    tess_trace_set_figure(engine->memory->trace, TESS_FIGURE_PSNR, it->psnr);
    tess_usage_look(s->usage, engine->device);
    if (!tess_stop_wanted(&engine->stop))
        s->outcome->done = facts->iteration + 1;
    return report(judge, facts->iteration + 1, error);
}

static tess_status open_prior(const tess_solving *s, tess_error *error)
{
    TESS_TRY(tess_engine_load(s->judge->workspace->engine, error));
    s->usage->loaded = tess_process_resident();
    return tess_prior_open(s->prior, error);
}

tess_status tess_reconstruct_solve(const tess_solving *s, tess_error *error)
{
    const tess_recipe *recipe = s->recipe;
    tess_workspace *w = s->judge->workspace;
    tess_outcome *outcome = s->outcome;
    const double most = s->max_seconds; /* the time of the start counts; at least one iteration is done */
    const tess_pnp_settings settings = {.iterations = recipe->iterations,
                                        .max_seconds = most > 0 ? fmax(most - outcome->seconds, 1e-9) : 0,
                                        .tolerance = s->tolerance,
                                        .step = recipe->step > 0      ? recipe->step
                                                : s->norm_squared > 0 ? 0.99 / s->norm_squared
                                                                      : 0,
                                        .norm_squared = s->norm_squared,
                                        .sigma = recipe->sigma,
                                        .last_sigma = recipe->last_sigma,
                                        .relax = recipe->relax,
                                        .inner = recipe->inner,
                                        .weight = WEIGHT * recipe->noise * recipe->noise,
                                        .low = s->judge->problem->low,
                                        .high = s->judge->problem->high,
                                        .denoise = tess_prior_denoise,
                                        .denoise_user = s->prior,
                                        .monitor = monitor,
                                        .monitor_user = (void *)s};
    TESS_TRY(tess_share_agree(w->op->share, open_prior(s, error), error));
    tess_usage_look(s->usage, w->engine->device);
    TESS_TRY(tess_pnp(&w->term, &settings, w->vectors, &outcome->result, error));
    tess_prior_close(s->prior);
    tess_engine_unload(w->engine);
    return tess_judge_image(s->judge, w->vectors[0], &outcome->psnr, &outcome->ssim, error);
}
