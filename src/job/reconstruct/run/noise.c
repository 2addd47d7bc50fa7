/* A filtered backprojection multiplies the noise of the measurements, by a factor that depends on the geometry. The
 * denoiser must remove it in the first iterations: with a smaller sigma it stays, because noisy data have little weight.
 * So noise of the measurements' level is backprojected alone, and what it becomes decides: the image begins with a
 * filter that passes less of it, and sigma begins above it. Nothing here depends on the truth. */
#include "job/reconstruct/run/noise.h"

#include <math.h>

#include "job/reconstruct/problem/data.h"
#include "physics/radon.h"
#include "physics/rays.h"

enum { SEED = 20 };
static const double ROUGH = 0.5; /* of the first sigma: from there on a smoother filter gains */
/* First sigma, in deviations of the noise that Ram-Lak passes, and the largest: 300 photons (0.24 of the range) end
 * at 21 dB from 0.1, at 32.4 dB from 0.2, at 32.3 dB from 0.4. */
static const double FIRST = 1.5, MOST = 0.4;
/* Of a drawn problem a backprojection of n views passes 0.53 to 0.56 / sqrt(n) of the noise, in 2-D and 3-D. */
static const double PASSED = 1;

void tess_recipe_set_filter(const tess_problem *p, tess_operator *op, tess_filter filter)
{
    if (op->inner)
        op = op->inner;
    (p->physics == TESS_PHYSICS_CONE ? tess_rays_set_filter : tess_radon_set_filter)(op, filter);
}

/* The deviation of the noise in a backprojection, in units of the solver. */
static tess_status backprojected(const tess_problem *p, double level, tess_workspace *w, double *deviation,
                                 tess_error *error)
{
    const tess_data_term *term = &w->term;
    const tess_sum nothing = {.a = 0, .x = w->measurement.data};
    double square;
    TESS_TRY(tess_vectors_sum(&term->measurements, &nothing, term->residual, error));
    TESS_TRY(
        tess_share_keep(p->share, tess_problem_add_noise(p, w, term->residual, level, SEED, error), error));
    tess_recipe_set_filter(p, w->op, TESS_FILTER_RAM_LAK);
    w->op->table->inverse(w->op, term->residual, w->vectors[0], w->scratch, NULL);
    TESS_TRY(tess_vectors_dot(&term->images, w->vectors[0], w->vectors[0], &square, error));
    *deviation = sqrt(square / (double)tess_workspace_all_values(w));
    return TESS_OK;
}

tess_status tess_recipe_choose_filter(const tess_problem *p, tess_recipe *recipe, tess_workspace *w,
                                      double noise, double high, double *deviation, tess_error *error)
{
    TESS_TRY(backprojected(p, noise, w, deviation, error));
    *deviation /= high;
    recipe->filter = *deviation > ROUGH * recipe->sigma ? TESS_FILTER_HANN : TESS_FILTER_RAM_LAK;
    return TESS_OK;
}

tess_status tess_recipe_follow_noise(const tess_problem *p, tess_recipe *recipe, tess_workspace *w,
                                     tess_error *error)
{
    double deviation;
    if (p->physics == TESS_PHYSICS_BLUR || p->as_published || !w->op->table->inverse)
        return TESS_OK;
    if (p->synthetic && PASSED * recipe->noise < ROUGH * recipe->sigma * p->high * sqrt((double)p->count)) {
        recipe->filter = TESS_FILTER_RAM_LAK; /* what follows would find the same, after a backprojection */
        return TESS_OK;
    }
    TESS_TRY(tess_recipe_choose_filter(p, recipe, w, recipe->noise, p->high, &deviation, error));
    if (!recipe->fixed_sigma)
        recipe->sigma = fmax(recipe->sigma, fmin(FIRST * deviation, MOST));
    return TESS_OK;
}
