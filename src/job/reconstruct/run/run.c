#include "job/reconstruct/run/run.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/process.h"
#include "base/trace.h"
#include "job/reconstruct/mask/hidden.h"
#include "job/reconstruct/mask/hidden_rows.h"
#include "job/reconstruct/run/begin.h"
#include "job/reconstruct/run/settle.h"
#include "job/reconstruct/scan/rings.h"

/* Weight of the measurements' noise against the prior's; the usual choice in half-quadratic splitting. */
static const double WEIGHT = 0.23;

/* Rings are looked for after this iteration: the start's are denoised by then, and data that have none lose no time. If
 * there are some, they are found in rounds, each of which starts anew from what is left: a strong ring in the start is
 * taken for structure at first. Rounds that find nothing more only blur the edges of symmetric objects. */
enum { LOOK = 1, ROUNDS = 3 };
static const double ROUGH = 0.1; /* least sigma of these rounds */
static const double GROWS = 1.1; /* of the rings' level, in a round after which there is another one */

/* Fewer iterations are not judged by the data; with so many steps of conjugate gradients they are solved for, also at the border. */
enum { LEAST_JUDGED = 2, SURE_INNER = 30 };

/* One run of the loop. */
typedef struct running {
    const tess_solving *solving;
    bool look, found; /* for rings */
    int64_t before;   /* iterations of earlier runs */
} running;

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
    running *r = user;
    const tess_solving *s = r->solving;
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
    if (r->look && facts->iteration == LOOK) {
        TESS_TRY(tess_share_agree(judge->workspace->op->share, TESS_OK, error));
        TESS_TRY(tess_rings_subtract(judge->problem, judge->workspace, facts->x, &s->outcome->rings, error));
        r->found = s->outcome->rings > 0;
    }
    return report(judge, r->before + facts->iteration + 1, error);
}

static tess_status open_prior(const tess_solving *s, tess_error *error)
{
    if (tess_prior_in_strips(s->prior))
        tess_engine_help(s->judge->workspace->engine);
    TESS_TRY(tess_engine_load(s->judge->workspace->engine, error));
    s->usage->loaded = tess_process_resident();
    return tess_prior_open(s->prior, error);
}

/* Iterates from the first estimate, until rings are found. */
static tess_status iterate(running *r, const tess_recipe *recipe, tess_error *error)
{
    const tess_solving *s = r->solving;
    tess_workspace *w = s->judge->workspace;
    tess_outcome *outcome = s->outcome;
    const double most = s->max_seconds; /* the time of the start counts; at least one iteration is done */
    const tess_mem_usage peak = outcome->result.peak;
    const double noise = tess_recipe_held_noise(recipe, s->judge->problem);
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
                                        .weight = WEIGHT * noise * noise,
                                        .low = tess_hidden_low(s->judge->problem),
                                        .high = tess_hidden_high(s->judge->problem),
                                        .denoise = tess_prior_denoise,
                                        .denoise_user = s->prior,
                                        .monitor = monitor,
                                        .monitor_user = r,
                                        .enough = &r->found};
    TESS_TRY(tess_pnp(&w->term, &settings, w->vectors, &outcome->result, error));
    tess_mem_usage_raise(&outcome->result.peak, &peak);
    r->before += outcome->result.iterations;
    return TESS_OK;
}

/* Solves again, when rings were found: rounds that end with what the image leaves, then the whole loop. */
static tess_status solve_without_rings(running *r, tess_error *error)
{
    const tess_solving *s = r->solving;
    const tess_judge *judge = s->judge;
    tess_workspace *w = judge->workspace;
    tess_recipe rough = *s->recipe;
    rough.iterations = LOOK + 1;
    rough.sigma = rough.last_sigma = fmax(rough.sigma, ROUGH);
    *r = (running){.solving = s};
    tess_stop_begin(&w->engine->stop,
                    (ROUNDS * rough.iterations + s->recipe->iterations) * tess_workspace_pixels(w));
    double before = 0;
    for (int round = 0; round < ROUNDS && s->outcome->rings > GROWS * before; round++) {
        before = s->outcome->rings;
        TESS_TRY(tess_share_agree(w->op->share, tess_reconstruct_restart(judge, &rough, error), error));
        TESS_TRY(iterate(r, &rough, error));
        TESS_TRY(tess_rings_subtract(judge->problem, w, w->vectors[0], &s->outcome->rings, error));
    }
    TESS_TRY(tess_share_agree(w->op->share, tess_reconstruct_restart(judge, s->recipe, error), error));
    return iterate(r, s->recipe, error);
}

/* The image of the second iteration must be near the solution: what it has not reached yet is no ring. */
static bool rings_wanted(const tess_solving *s)
{
    const tess_recipe *recipe = s->recipe;
    return tess_rings_wanted(s->judge->problem) && recipe->init == TESS_INIT_FILTERED && recipe->inner > 0 &&
           recipe->iterations > LOOK && !(s->max_seconds > 0);
}

/* Looks at how the result fits the data. If it does not, the loop may not have converged: wide kernels, and pictures that are hardly larger than
 * them, need more steps. So it goes on before data are called wrong. */
static tess_status judge_fit(running *r, const tess_recipe *recipe, tess_fit *fit, tess_error *error)
{
    const tess_solving *s = r->solving;
    tess_recipe more = *recipe;
    TESS_TRY(tess_reconstruct_look_at_fit(s->judge, recipe, fit, error));
    const bool judged = s->outcome->result.iterations >= LEAST_JUDGED;
    s->outcome->misfit = judged ? tess_fit_misfit(fit, s->judge->problem) : 0;
    if (!judged || !(tess_fit_ratio(fit) > 0) || s->max_seconds > 0 ||
        tess_data_term_exact(s->judge->workspace->op))
        return TESS_OK;
    more.sigma = more.last_sigma;
    more.inner = tess_max_i64(more.inner, SURE_INNER);
    tess_stop_begin(&s->judge->workspace->engine->stop,
                    more.iterations * tess_workspace_pixels(s->judge->workspace));
    *r = (running){.solving = s};
    TESS_TRY(iterate(r, &more, error));
    TESS_TRY(tess_reconstruct_look_at_fit(s->judge, recipe, fit, error));
    if (!(tess_fit_misfit(fit, s->judge->problem) > 0))
        s->outcome->misfit = 0;
    return TESS_OK;
}

/* The last step. Data that do not fit the kernel are given less weight, in another run of the loop. */
static tess_status finish(running *r, tess_error *error)
{
    const tess_solving *s = r->solving;
    tess_outcome *outcome = s->outcome;
    tess_recipe raised = *s->recipe;
    tess_fit fit;
    TESS_TRY(judge_fit(r, s->recipe, &fit, error));
    const double misfit = outcome->misfit;
    if (!(misfit > 0 && raised.noise_from == TESS_NOISE_FROM_DATA) || s->max_seconds > 0)
        return tess_reconstruct_settle(s->judge, s->recipe, &fit, &outcome->settled, error);
    raised.noise = outcome->raised = tess_fit_raised_noise(&fit, misfit, s->judge->problem);
    raised.noise_from = TESS_NOISE_FROM_GIVEN; /* from here on it is as if the problem had stated it */
    tess_stop_begin(&s->judge->workspace->engine->stop,
                    raised.iterations * tess_workspace_pixels(s->judge->workspace));
    *r = (running){.solving = s};
    TESS_TRY(tess_reconstruct_restart(s->judge, &raised, error));
    TESS_TRY(iterate(r, &raised, error));
    TESS_TRY(judge_fit(r, &raised, &fit, error));
    outcome->misfit = misfit;
    return tess_reconstruct_settle(s->judge, &raised, &fit, &outcome->settled, error);
}

tess_status tess_reconstruct_solve(const tess_solving *s, tess_error *error)
{
    tess_workspace *w = s->judge->workspace;
    tess_outcome *outcome = s->outcome;
    running r = {.solving = s, .look = rings_wanted(s)};
    TESS_TRY(tess_share_agree(w->op->share, open_prior(s, error), error));
    tess_usage_look(s->usage, w->engine->device);
    TESS_TRY(iterate(&r, s->recipe, error));
    if (r.found)
        TESS_TRY(solve_without_rings(&r, error));
    TESS_TRY(tess_share_agree(w->op->share, finish(&r, error), error));
    TESS_TRY(tess_share_agree(w->op->share, tess_hidden_restore_frame(s->judge->problem, w, error), error));
    tess_prior_close(s->prior);
    tess_engine_unload(w->engine);
    return tess_judge_image(s->judge, w->vectors[0], &outcome->psnr, &outcome->ssim, error);
}
