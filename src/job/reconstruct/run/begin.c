#include "job/reconstruct/run/begin.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/reconstruct/look/noise.h"
#include "job/reconstruct/plan/margins.h"
#include "job/reconstruct/run/noise.h"
#include "job/reconstruct/run/settle.h"
#include "solve/cg.h"
#include "solve/power.h"

static const double CONTRAST = 0.1;

typedef struct starting {
    const tess_problem *problem;
    const tess_recipe *recipe;
    const tess_judge *judge;
    tess_workspace *w;
    uint64_t seed;
    tess_start *start;
} starting;

static void show(const starting *s, const void *image)
{
    tess_device *device = s->w->device;
    if (s->w->host.shown)
        device->memory->copy(device, s->w->host.shown, image,
                             (size_t)s->w->layout.image_values * sizeof(float), NULL);
}

/* The weighted mean of the measurements, the simplest reconstruction. */
static tess_status mean_of_measurements(const starting *s, void *mean, tess_error *error)
{
    for (int64_t i = 0; i < s->problem->count; i++)
        TESS_TRY(
            tess_share_keep(s->problem->share, tess_margins_add(s->w, s->problem, i, mean, error), error));
    show(s, s->w->measurement.data);
    s->start->baseline = "mean of the measurements";
    return tess_judge_image(s->judge, mean, &s->start->baseline_psnr, NULL, error);
}

/* Computes the baseline and leaves it in `image`: the better of two filters if the truth is known, otherwise that of
 * the start. The start itself must not depend on the truth. */
static tess_status filtered(const starting *s, void *image, tess_error *error)
{
    static const char *const names[2][2] = {{"FBP, Ram-Lak", "FBP, Hann"}, {"FDK, Ram-Lak", "FDK, Hann"}};
    static const tess_filter filters[] = {TESS_FILTER_RAM_LAK, TESS_FILTER_HANN};
    tess_operator *op = s->w->op;
    tess_start *start = s->start;
    int best = s->recipe->filter == TESS_FILTER_HANN;
    start->baseline_psnr = NAN;
    start->baseline = "none: there is no FFT on this device";
    if (!op->table->inverse)
        return TESS_OK;
    for (int i = 0; i < 2 && s->w->host.truth; i++) {
        double psnr;
        tess_recipe_set_filter(s->problem, op, filters[i]);
        op->table->inverse(op, s->w->measurement.data, image, s->w->scratch, NULL);
        TESS_TRY(tess_judge_image(s->judge, image, &psnr, NULL, error));
        if (psnr > start->baseline_psnr || isnan(start->baseline_psnr)) {
            start->baseline_psnr = psnr;
            best = i;
        }
    }
    tess_recipe_set_filter(s->problem, op, filters[best]);
    op->table->inverse(op, s->w->measurement.data, image, s->w->scratch, NULL);
    if (s->w->host.shown)
        TESS_TRY(tess_share_keep(s->problem->share,
                                 tess_margins_rows(s->w, s->problem, image, tess_problem_first(s->problem),
                                                   tess_problem_own(s->problem), s->w->host.shown, error),
                                 error));
    start->baseline = names[s->problem->physics == TESS_PHYSICS_CONE][best];
    return TESS_OK;
}

/* No iteration is done yet, but the caller may stop the job. */
static tess_status ask(void *user, tess_error *error)
{
    return tess_stop_check(user, error);
}

static tess_status find_step(const starting *s, tess_error *error)
{
    const tess_recipe *recipe = s->recipe;
    tess_start *start = s->start;
    start->norm_squared = s->w->op->norm_squared;
    /* Conjugate gradients need no step, but a relaxation is defined in steps. */
    if (recipe->step > 0 || start->norm_squared > 0 || (recipe->inner > 0 && !(recipe->relax > 0)))
        return TESS_OK;
    const tess_power_settings settings = {.iterations = TESS_START_POWER,
                                          .absolute = recipe->absolute_power ? 1e-3 : 0,
                                          .relative = recipe->absolute_power ? 0 : 1e-3,
                                          .seed = s->seed,
                                          .tick = {ask, &s->w->engine->stop}};
    tess_power_result result;
    TESS_TRY(tess_power(&s->w->term, &settings, s->w->vectors, &result, error));
    start->norm_squared = result.norm_squared;
    start->power_iterations = result.iterations;
    return TESS_OK;
}

/* Scales the start to the peak if the recipe requires it or if its scale has no meaning, then clamps it. */
static tess_status fit_range(const starting *s, tess_error *error)
{
    const tess_problem *p = s->problem;
    void *x = s->w->vectors[0];
    tess_sum sum = {.a = 1, .x = x, .low = p->low, .high = tess_problem_top(p)};
    if (s->recipe->peak_normalised || s->recipe->init == TESS_INIT_ADJOINT) {
        tess_extremes seen;
        TESS_TRY(tess_workspace_extremes(s->w, x, tess_workspace_values(&s->w->op->image), &seen, error));
        if (seen.high > 0)
            sum.a = p->high / seen.high;
    }
    return tess_vectors_sum(&s->w->term.images, &sum, x, error);
}

/* Of the conjugate gradients: the inverse of a measured blur multiplies noise, which the iterations would not remove. So the
 * picture is taken to vary by CONTRAST of its range. */
static double least_shift(const starting *s)
{
    const tess_problem *p = s->problem;
    const bool blur = p->physics == TESS_PHYSICS_BLUR && !p->synthetic && !p->as_published;
    return blur ? fmax(1e-8, pow(s->recipe->noise / (CONTRAST * p->high), 2)) : 1e-8;
}

static tess_status first_estimate(const starting *s, tess_error *error)
{
    tess_workspace *w = s->w;
    tess_operator *op = w->op;
    void *x = w->vectors[0];
    const tess_sum nothing = {.a = 0, .x = x};
    const tess_cg_settings cg = {.iterations = TESS_START_CG,
                                 .tolerance = 1e-4,
                                 .shift = least_shift(s),
                                 .tick = {ask, &w->engine->stop}};
    tess_cg_result result;
    const tess_sum mean = {.a = 1, .x = w->vectors[1]};
    if (s->recipe->init == TESS_INIT_MEAN) {
        TESS_TRY(tess_share_keep(s->problem->share, tess_margins_fill(w, s->problem, w->vectors[1], error),
                                 error));
        TESS_TRY(tess_vectors_sum(&w->term.images, &mean, x, error));
        return fit_range(s, error);
    }
    /* Clears x: what was computed there before is finite, so nothing of it remains. */
    TESS_TRY(tess_vectors_sum(&w->term.images, &nothing, x, error));
    switch (s->recipe->init) {
    case TESS_INIT_ZERO:
    case TESS_INIT_MEAN:
        return TESS_OK;
    case TESS_INIT_ADJOINT:
        op->table->adjoint(op, w->measurement.data, x, w->scratch, NULL);
        break;
    case TESS_INIT_FILTERED:
        tess_recipe_set_filter(s->problem, op, s->recipe->filter);
        op->table->inverse(op, w->measurement.data, x, w->scratch, NULL);
        break;
    case TESS_INIT_CG:
        TESS_TRY(tess_cg(&w->term, &cg, w->vectors + 1, x, &result, error));
        s->start->cg_iterations = result.iterations;
        break;
    }
    return fit_range(s, error);
}

/* Copies the first estimate between the solver and the host. */
static void keep_start(tess_workspace *w, bool back)
{
    tess_device *device = w->device;
    const size_t bytes = (size_t)w->layout.start_values * sizeof(float);
    if (w->host.start)
        device->memory->copy(device, back ? w->vectors[0] : w->host.start,
                             back ? w->host.start : w->vectors[0], bytes, NULL);
}

bool tess_reconstruct_keeps_start(const tess_problem *p, const tess_recipe *recipe)
{
    return tess_fit_is_judged(p, recipe) && recipe->noise_from != TESS_NOISE_FROM_GIVEN &&
           (recipe->init == TESS_INIT_MEAN || recipe->init == TESS_INIT_ADJOINT);
}

tess_status tess_reconstruct_begin(const tess_judge *judge, tess_recipe *recipe, uint64_t seed,
                                   tess_start *start, tess_error *error)
{
    tess_workspace *w = judge->workspace;
    tess_device *device = w->device;
    tess_operator *op = w->op;
    const starting s = {judge->problem, recipe, judge, w, seed, start};
    if (recipe->init == TESS_INIT_FILTERED && !op->table->inverse)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "filtering needs cuFFT, which is not installed; use `init` cg, or `device` cpu");
    TESS_TRY(tess_recipe_follow_noise(s.problem, recipe, w, error));
    TESS_TRY(s.problem->physics == TESS_PHYSICS_BLUR ? mean_of_measurements(&s, w->vectors[1], error)
                                                     : filtered(&s, w->vectors[1], error));
    if (s.problem->weights)
        TESS_TRY(tess_share_keep(s.problem->share, tess_problem_weigh(s.problem, w, error), error));
    if (tess_data_term_absorbed(op))
        op->table->absorb(op, w->measurement.data, w->scratch, NULL);
    TESS_TRY(find_step(&s, error));
    TESS_TRY(first_estimate(&s, error));
    keep_start(w, false);
    TESS_TRY(device->streams->sync(device, NULL, error));
    if (tess_data_term_absorbed(op))
        tess_workspace_drop_measurement(w);
    return TESS_OK;
}

tess_status tess_reconstruct_restart(const tess_judge *judge, const tess_recipe *recipe, tess_error *error)
{
    tess_device *device = judge->workspace->device;
    tess_start unused = {0};
    const starting s = {judge->problem, recipe, judge, judge->workspace, 0, &unused};
    if (judge->workspace->host.start)
        keep_start(judge->workspace, true);
    else
        TESS_TRY(first_estimate(&s, error));
    return device->streams->sync(device, NULL, error);
}
