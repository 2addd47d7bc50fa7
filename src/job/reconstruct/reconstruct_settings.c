/* Presets. "deepinv" has the published settings of the same problems, for comparison; "default" has Tessera's
 * settings, one set for every size, found with the bundled networks. */
#include <math.h>
#include <string.h>

#include "job/reconstruct/reconstruct_settings.h"

#include "job/reconstruct/mask/hidden.h"

void tess_reconstruct_settings_init(tess_reconstruct_settings *settings)
{
    *settings = (tess_reconstruct_settings){.noise = -1,
                                            .sigma = -1,
                                            .last_sigma = -1,
                                            .step = -1,
                                            .inner = -1,
                                            .relax = -1,
                                            .halo = TESS_HALO_AUTO};
    tess_common_init(&settings->common);
}

static const struct {
    const char *preset;
    tess_physics physics;
    tess_recipe recipe;
} presets[] = {
    {"default",
     TESS_PHYSICS_BLUR,
     {.init = TESS_INIT_ZERO, .iterations = 8, .inner = 6, .sigma = 0.1, .last_sigma = 0.03}},
    {"default",
     TESS_PHYSICS_RADON,
     {.init = TESS_INIT_FILTERED, .iterations = 8, .inner = 6, .sigma = 0.05, .last_sigma = 0.005}},
    {"default",
     TESS_PHYSICS_CONE,
     {.init = TESS_INIT_FILTERED, .iterations = 8, .inner = 6, .sigma = 0.05, .last_sigma = 0.005}},
    {"deepinv",
     TESS_PHYSICS_BLUR,
     {.iterations = 10,
      .sigma = 0.005,
      .last_sigma = 0.005,
      .step = 0.1,
      .absolute_power = true,
      .peak_normalised = true,
      .saturating_psnr = true}},
    {"deepinv",
     TESS_PHYSICS_RADON,
     {.iterations = 100,
      .sigma = 0.01,
      .last_sigma = 0.01,
      .absolute_power = true,
      .peak_normalised = true,
      .saturating_psnr = true}},
    {"deepinv",
     TESS_PHYSICS_CONE,
     {.init = TESS_INIT_CG,
      .iterations = 40,
      .sigma = 0.03,
      .last_sigma = 0.03,
      .relax = 10,
      .absolute_power = true,
      .peak_normalised = true,
      .saturating_psnr = true,
      .volume = true,
      .inflation = TESS_INFLATE_HALVES}},
};

static tess_status init_of(const char *name, tess_init *init, tess_error *error)
{
    static const char *const names[] = {"zero", "adjoint", "filtered", "cg", "mean"};
    for (int i = 0; i < 5; i++)
        if (strcmp(name, names[i]) == 0) {
            *init = (tess_init)i;
            return TESS_OK;
        }
    return tess_fail(error, TESS_BAD_OPTION, "`init` %s: use zero, adjoint, mean, filtered or cg", name);
}

static tess_status prior_of(const char *name, const tess_problem *problem, tess_recipe *recipe,
                            tess_error *error)
{
    recipe->volume = strcmp(name, "volume") == 0;
    if (!recipe->volume && strcmp(name, "slices") != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`prior` %s: use slices or volume", name);
    if (problem->depth == 1)
        return tess_fail(error, TESS_BAD_OPTION, "`prior` %s: %s is an image; leave it out", name,
                         problem->name);
    return TESS_OK;
}

/* Must follow the choice of the prior. */
static tess_status inflation_of(const char *name, const tess_problem *problem, tess_recipe *recipe,
                                tess_error *error)
{
    recipe->inflation = strcmp(name, "level") == 0 ? TESS_INFLATE_LEVEL : TESS_INFLATE_HALVES;
    if (recipe->inflation == TESS_INFLATE_HALVES && strcmp(name, "halves") != 0)
        return tess_fail(error, TESS_BAD_OPTION, "`inflate` %s: use halves or level", name);
    if (problem->depth == 1)
        return tess_fail(error, TESS_BAD_OPTION, "`inflate` %s: %s is an image; leave it out", name,
                         problem->name);
    if (!recipe->volume)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`inflate` %s: slices are denoised as they are; use `prior` volume with it", name);
    return TESS_OK;
}

/* Steps of conjugate gradients where values inside the picture are left out: the preconditioner, which knows no masks, is far off there,
 * and what few steps leave unsolved looks like dark spots. Photographs with highlights that are cut off end at 27.5, 31.0, 33.2, 34.4 and 34.5 dB
 * with 6, 12, 20, 30 and 50. */
enum { BEHIND_MASKS = 30 };

tess_status tess_recipe_of(const tess_reconstruct_settings *s, const tess_problem *problem,
                           tess_recipe *recipe, tess_error *error)
{
    const char *preset = s->preset ? s->preset : "default";
    const bool drawn = problem->synthetic && problem->physics == TESS_PHYSICS_BLUR;
    bool found = false;
    for (size_t i = 0; i < sizeof presets / sizeof presets[0] && !found; i++)
        if (strcmp(presets[i].preset, preset) == 0 && presets[i].physics == problem->physics) {
            *recipe = presets[i].recipe;
            found = true;
        }
    if (!found)
        return tess_fail(error, TESS_BAD_OPTION, "`preset` %s: use default or deepinv", preset);
    recipe->noise = s->noise >= 0         ? s->noise / tess_problem_measured_unit(problem)
                    : problem->noise >= 0 ? problem->noise
                    : drawn               ? 0.1
                                          : 0.01 * problem->high;
    recipe->noise_from =
        s->noise >= 0 || problem->noise >= 0 ? TESS_NOISE_FROM_GIVEN : TESS_NOISE_FROM_DEFAULT;
    if (s->prior)
        TESS_TRY(prior_of(s->prior, problem, recipe, error));
    if (s->inflate)
        TESS_TRY(inflation_of(s->inflate, problem, recipe, error));
    /* pixels that are not measured start like the nearest measured pixel, not as black */
    if (problem->unknown && strcmp(preset, "default") == 0)
        recipe->init = TESS_INIT_MEAN;
    if (s->init)
        TESS_TRY(init_of(s->init, &recipe->init, error));
    if (s->iterations > 0)
        recipe->iterations = s->iterations;
    if (s->sigma >= 0) {
        recipe->sigma = s->sigma;
        recipe->last_sigma = s->last_sigma >= 0 ? s->last_sigma : s->sigma;
    }
    recipe->fixed_sigma = s->sigma >= 0 || strcmp(preset, "default") != 0;
    if (s->step >= 0) { /* a given step means gradient steps */
        recipe->step = s->step;
        recipe->inner = 0;
    }
    if (tess_hidden_any(problem) && recipe->inner > 0 && strcmp(preset, "default") == 0)
        recipe->inner = BEHIND_MASKS;
    if (s->inner >= 0)
        recipe->inner = s->inner;
    if (s->relax >= 0)
        recipe->relax = s->relax;
    const bool exact = problem->physics == TESS_PHYSICS_BLUR && !problem->unknown;
    if (s->inner > 0 && exact)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`inner` %lld: circular blurs are solved exactly, without inner steps; "
                         "leave it out, or use `inner` 0 for gradient steps",
                         (long long)s->inner);
    if (s->inner > 0 && s->step >= 0 && !(recipe->relax > 0)) /* a relaxation is defined in steps */
        return tess_fail(error, TESS_BAD_OPTION,
                         "`inner` %lld: conjugate gradients find their steps; leave out `step`, or `inner`",
                         (long long)s->inner);
    if (recipe->init == TESS_INIT_MEAN && problem->physics != TESS_PHYSICS_BLUR)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`init` mean: is for blurred pictures only; use zero, adjoint, filtered or cg");
    if (recipe->init == TESS_INIT_FILTERED && problem->physics == TESS_PHYSICS_BLUR)
        return tess_fail(error, TESS_BAD_OPTION,
                         "`init` filtered: a blur has no filtered inverse; use "
                         "zero, adjoint, mean or cg");
    return TESS_OK;
}

/* With an unknown boundary, the fewer steps there are, the less the border's pixels are solved for, and what is wrong
 * there spreads when the data weigh much. 0.0025 of the range is the best level for 6 steps over seven kernels and two
 * pictures without noise: 27 to 40 dB, against 8 to 26 dB with the true level 0; with 20 steps it is half of that. */
double tess_recipe_held_noise(const tess_recipe *recipe, const tess_problem *problem)
{
    const bool few = problem->physics == TESS_PHYSICS_BLUR && problem->unknown && recipe->inner > 0;
    return few ? fmax(recipe->noise, 0.0025 * problem->high * sqrt(6.0 / (double)recipe->inner))
               : recipe->noise;
}

static bool sensible(double value, double most)
{
    return !isnan(value) && value <= most;
}

tess_status tess_reconstruct_check(const tess_reconstruct_settings *s, tess_error *error)
{
    if (!s->output)
        return tess_fail(error, TESS_BAD_OPTION, "reconstruct needs `output`");
    if (!s->problem)
        return tess_fail(
            error, TESS_BAD_OPTION,
            "reconstruct needs `problem`: deblur, tomo2d, tomo3d, or a JSON file of measured data");
    if (s->size < 0 || s->size > 1 << 16 || (s->size > 0 && s->size < 16))
        return tess_fail(error, TESS_BAD_OPTION, "`size` %lld: use 16 to 65536", (long long)s->size);
    if (s->size_width != 0 && (s->size_width < 16 || s->size_width > 1 << 16 || s->size == 0 || s->image ||
                               strcmp(s->problem, "deblur") != 0))
        return tess_fail(error, TESS_BAD_OPTION,
                         "`size` %lldx%lld: HxW, of 16 to 65536 each, is for deblur without an `image`",
                         (long long)s->size, (long long)s->size_width);
    if (s->operators < 0 || s->operators > 1024)
        return tess_fail(error, TESS_BAD_OPTION, "`operators` %lld: use 1 to 1024", (long long)s->operators);
    if (s->angles < 0 || s->angles > 100000)
        return tess_fail(error, TESS_BAD_OPTION, "`angles` %lld: use 1 to 100000", (long long)s->angles);
    if (s->iterations < 0 || s->iterations > 1000000)
        return tess_fail(error, TESS_BAD_OPTION, "`iterations` %lld: use 1 to 1000000",
                         (long long)s->iterations);
    if (!sensible(s->sigma, 10) || !sensible(s->last_sigma, 10))
        return tess_fail(error, TESS_BAD_OPTION, "`sigma`: is on the [0,1] scale; write 0.05, or 0.1:0.02");
    if (!sensible(s->noise, 1e6))
        return tess_fail(error, TESS_BAD_OPTION, "`noise` %g: use 0 or more", s->noise);
    if (!sensible(s->step, 1e30) || !sensible(s->relax, 1e30))
        return tess_fail(error, TESS_BAD_OPTION, "`step` and `relax`: use a positive number, or `step` auto");
    if (s->inner > 1000)
        return tess_fail(error, TESS_BAD_OPTION, "`inner` %lld: use 0 to 1000", (long long)s->inner);
    if (!(s->tolerance >= 0) || !(s->max_seconds >= 0))
        return tess_fail(error, TESS_BAD_OPTION, "`tolerance` and `max_seconds`: use a positive number");
    if (s->halo < TESS_HALO_EXACT || s->halo > 1 << 20 || s->batch < 0 || s->batch > 4096)
        return tess_fail(error, TESS_BAD_OPTION, "`halo`: auto, exact or pixels; `batch`: auto or 1 to 4096");
    return TESS_OK;
}
