/* Before the first iteration: the baseline, the step, and the first estimate.
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "job/reconstruct/reconstruct.h"
#include "physics/filter.h"
#include "physics/radon.h"
#include "physics/rays.h"
#include "solve/cg.h"
#include "solve/power.h"

static int64_t values_of(const tess_tensor *t)
{
    return t->n * t->d * t->h * t->w * t->c;
}

static void show(tess_reconstruct_job *job, const void *image)
{
    tess_device *device = job->engine.device;
    const tess_problem *p = &job->problem;
    if (job->shown)
        device->copy(device, job->shown, image,
                     (size_t)(tess_problem_rows(p) * tess_problem_row(p)) * sizeof(float), NULL);
}

/* The mean of the measurements, by their weights, which is what one would look at without any
 * method. */
static tess_status mean_of_measurements(tess_reconstruct_job *job, void *mean, tess_error *error)
{
    for (int64_t i = 0; i < job->problem.count; i++)
        TESS_TRY(tess_margins_add(job, i, mean, error));
    show(job, job->measurement.data);
    job->baseline = "mean of the measurements";
    return tess_reconstruct_quality(job, mean, &job->baseline_psnr, NULL, error);
}

static void set_filter(tess_reconstruct_job *job, tess_filter filter)
{
    if (job->problem.physics == TESS_PHYSICS_CONE)
        tess_rays_set_filter(job->op, filter);
    else
        tess_radon_set_filter(job->op, filter);
}

/* The better of two filters, which is left in `image`. */
static tess_status filtered(tess_reconstruct_job *job, void *image, tess_error *error)
{
    static const char *const names[2][2] = {{"FBP, Ram-Lak", "FBP, Hann"}, {"FDK, Ram-Lak", "FDK, Hann"}};
    static const tess_filter filters[] = {TESS_FILTER_RAM_LAK, TESS_FILTER_HANN};
    tess_operator *op = job->op;
    int best = 0;
    job->baseline_psnr = NAN;
    job->baseline = "none: there is no FFT on this device";
    if (!op->table->inverse)
        return TESS_OK;
    for (int i = 0; i < 2; i++) {
        double psnr;
        set_filter(job, filters[i]);
        op->table->inverse(op, job->measurement.data, image, job->scratch, NULL);
        TESS_TRY(tess_reconstruct_quality(job, image, &psnr, NULL, error));
        if (psnr > job->baseline_psnr || isnan(job->baseline_psnr)) {
            job->baseline_psnr = psnr;
            best = i;
        }
        if (isnan(psnr))
            break;
    }
    set_filter(job, filters[best]);
    op->table->inverse(op, job->measurement.data, image, job->scratch, NULL);
    show(job, image);
    job->baseline = names[job->problem.physics == TESS_PHYSICS_CONE][best];
    return TESS_OK;
}

/* Nothing is done yet, but whoever waits may stop it. */
static tess_status ask(void *user, tess_error *error)
{
    tess_reconstruct_job *job = user;
    return tess_stop_check(&job->engine.stop, error);
}

static tess_status find_step(tess_reconstruct_job *job, tess_error *error)
{
    const tess_recipe *recipe = &job->recipe;
    job->norm_squared = job->op->norm_squared;
    /* Conjugate gradients need no step, but a relaxation is told in steps. */
    if (recipe->step > 0 || job->norm_squared > 0 || (recipe->inner > 0 && !(recipe->relax > 0)))
        return TESS_OK;
    const tess_power_settings settings = {.iterations = TESS_START_POWER,
                                          .absolute = recipe->absolute_power ? 1e-3 : 0,
                                          .relative = recipe->absolute_power ? 0 : 1e-3,
                                          .seed = job->settings->common.seed,
                                          .tick = {ask, job}};
    tess_power_result result;
    TESS_TRY(tess_power(&job->term, &settings, job->vectors, &result, error));
    job->norm_squared = result.norm_squared;
    job->power_iterations = result.iterations;
    return TESS_OK;
}

static void largest(void *user, int64_t first, int64_t count, float *values)
{
    (void)first;
    float *most = user;
    for (int64_t i = 0; i < count; i++)
        *most = fmaxf(*most, values[i]);
}

/* Scaled to the peak where the recipe wants it, or where the scale says
 * nothing, then clamped. */
static tess_status fit_range(tess_reconstruct_job *job, tess_error *error)
{
    const tess_problem *p = &job->problem;
    tess_sum sum = {.a = 1, .x = job->vectors[0], .low = p->low, .high = p->high};
    float peak = -INFINITY;
    if (job->recipe.peak_normalised || job->recipe.init == TESS_INIT_ADJOINT) {
        TESS_TRY(tess_device_pieces(job, job->vectors[0], values_of(&job->op->image), false, largest, &peak,
                                    error));
        if (peak > 0)
            sum.a = p->high / (double)peak;
    }
    return tess_vectors_sum(&job->term.images, &sum, job->vectors[0], error);
}

static tess_status first_estimate(tess_reconstruct_job *job, tess_error *error)
{
    tess_operator *op = job->op;
    void *x = job->vectors[0];
    const tess_sum nothing = {.a = 0, .x = x};
    const tess_cg_settings cg = {
        .iterations = TESS_START_CG, .tolerance = 1e-4, .shift = 1e-8, .tick = {ask, job}};
    tess_cg_result result;
    const tess_sum mean = {.a = 1, .x = job->vectors[1]};
    if (job->recipe.init == TESS_INIT_MEAN) {
        TESS_TRY(tess_margins_fill(job, job->vectors[1], error));
        TESS_TRY(tess_vectors_sum(&job->term.images, &mean, x, error));
        return fit_range(job, error);
    }
    /* What was computed here before is finite, so that nothing of it is left. */
    TESS_TRY(tess_vectors_sum(&job->term.images, &nothing, x, error));
    switch (job->recipe.init) {
    case TESS_INIT_ZERO:
    case TESS_INIT_MEAN:
        return TESS_OK;
    case TESS_INIT_ADJOINT:
        op->table->adjoint(op, job->measurement.data, x, job->scratch, NULL);
        break;
    case TESS_INIT_FILTERED: {
        op->table->inverse(op, job->measurement.data, x, job->scratch, NULL);
        break;
    }
    case TESS_INIT_CG:
        TESS_TRY(tess_cg(&job->term, &cg, job->vectors + 1, x, &result, error));
        job->cg_iterations = result.iterations;
        break;
    }
    return fit_range(job, error);
}

tess_status tess_reconstruct_begin(tess_reconstruct_job *job, tess_error *error)
{
    tess_device *device = job->engine.device;
    tess_operator *op = job->op;
    if (job->recipe.init == TESS_INIT_FILTERED && !op->table->inverse)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "filtering needs cuFFT, which is not installed; use --init cg, or --device cpu");
    TESS_TRY(job->problem.physics == TESS_PHYSICS_BLUR ? mean_of_measurements(job, job->vectors[1], error)
                                                       : filtered(job, job->vectors[1], error));
    if (job->problem.weights)
        TESS_TRY(tess_problem_weigh(job, error));
    if (tess_data_term_absorbed(op))
        op->table->absorb(op, job->measurement.data, job->scratch, NULL);
    TESS_TRY(find_step(job, error));
    TESS_TRY(first_estimate(job, error));
    TESS_TRY(device->sync(device, NULL, error));
    if (tess_data_term_absorbed(op)) {
        tess_reconstruct_drop(job, &job->measurement);
        job->term.measurement = NULL;
    }
    return TESS_OK;
}
