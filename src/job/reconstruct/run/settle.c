/* The network removes more than noise: where the data have little, its own error counts, so that a slight blur of a good
 * picture ended worse than it was. What of the gradient the noise explains is known from its level. An estimate takes
 * texture for noise that is not white; but then the network, which keeps most of the texture, leaves a gradient that is too small for so
 * much noise, and the level of the pixels alone is right. */
#include "job/reconstruct/run/settle.h"

#include <math.h>
#include <stdio.h>

#include "job/common/note.h"
#include "job/reconstruct/mask/hidden.h"
#include "solve/settle.h"

/* Of the noise's share of the gradient: the most that it explains, as estimates are wrong by a tenth, and the least that is left
 * of so much noise. Noise of photographs that was resampled leaves 0.8, texture that is taken for noise 0.1 to 0.35. */
static const double EXPLAINED = 1.25, LEFT = 0.4;
/* Sum of a kernel's squares, when its sum is 1: only slight blurs (Gaussians of 0.8 pixels or less) leave much texture. */
static const double SLIGHT = 0.12;
/* of the range: the network errs by at most this, more comes from a kernel that is not right; and the least noise, since few
 * conjugate gradient steps do not solve for the border if the data weigh more */
static const double MOST_ERROR = 0.03, LEAST_NOISE = 0.0025;

/* Ratio of the gradient to what noise explains: photographs whose kernel is right have up to 3.4 (in slight blurs 6.3); with
 * highlights that are cut off, or a frame that was added to the blurred picture, it is 5 to 150 (bench/studies/blur_faults.py). */
static const double MISFIT = 4.5;
/* Of the range: the least noise that is compared with, since of less the few steps towards the data leave a multiple; and how much less may
 * be meant: noise that is even weaker was given in another unit. */
static const double LEAST_JUDGED = 0.004, MOST_WEAKER = 10;
/* Measured values, of those of the picture with its margins: fewer are hardly more than a kernel, and what differs is what is not solved for. */
static const double ENOUGH = 0.34;
/* Of the noise that would explain all of it, and of the range: with more noise the result is only blurred, with less it has
 * rings. */
static const double RAISED = 0.5, MOST_RAISED = 0.12;

enum { CUT_OFF = 4 }; /* values at the end of the range: fewer are noise */

/* Drawn problems end as they always did. */
bool tess_fit_is_judged(const tess_problem *p, const tess_recipe *recipe)
{
    return p->physics == TESS_PHYSICS_BLUR && !p->synthetic && !p->as_published && recipe->inner > 0 &&
           !(recipe->relax > 0);
}

tess_status tess_reconstruct_look_at_fit(const tess_judge *judge, const tess_recipe *recipe, tess_fit *fit,
                                         tess_error *error)
{
    const tess_problem *p = judge->problem;
    tess_workspace *w = judge->workspace;
    tess_settle_facts facts;
    *fit = (tess_fit){0};
    /* With more noise than the network's error there is nothing to gain. */
    if (!tess_fit_is_judged(p, recipe) ||
        (recipe->noise_from == TESS_NOISE_FROM_GIVEN && recipe->noise > MOST_ERROR * p->high))
        return TESS_OK;
    TESS_TRY(tess_settle_look(&w->term, w->vectors, &facts, error));
    if (!(facts.trace > 0 && facts.squared > 0))
        return TESS_OK;
    const double all = (double)(tess_workspace_all_values(w) * p->count);
    const bool slight = facts.trace > SLIGHT * all;
    const bool texture = recipe->noise_from == TESS_NOISE_FROM_DATA && !(p->quantised > 0) && slight &&
                         facts.square < LEFT * recipe->noise * recipe->noise * facts.trace;
    const double noise = texture ? recipe->noise_of_pixels : recipe->noise;
    const double measured = (double)(p->count * p->height * tess_problem_row(p));
    *fit = (tess_fit){facts.square, facts.squared, noise * noise * facts.trace, noise,
                      slight || measured < ENOUGH * (all / (double)p->count)};
    return TESS_OK;
}

double tess_fit_ratio(const tess_fit *fit)
{
    const double ratio = fit->explained > 0 ? sqrt(fit->square / fit->explained) : 0;
    return ratio > MISFIT && !fit->unsure ? ratio : 0;
}

double tess_fit_misfit(const tess_fit *fit, const tess_problem *problem)
{
    const double ratio = tess_fit_ratio(fit), weaker = LEAST_JUDGED * problem->high / fit->noise;
    return ratio > MISFIT * fmin(fmax(weaker, 1), MOST_WEAKER) ? ratio : 0;
}

double tess_fit_raised_noise(const tess_fit *fit, double misfit, const tess_problem *problem)
{
    return fmin(RAISED * fit->noise * misfit, MOST_RAISED * problem->high);
}

tess_status tess_reconstruct_settle(const tess_judge *judge, const tess_recipe *recipe, const tess_fit *fit,
                                    double *settled, tess_error *error)
{
    const tess_problem *p = judge->problem;
    tess_workspace *w = judge->workspace;
    const double more = fit->square - EXPLAINED * fit->explained;
    if (!(fit->squared > 0 && more > 0))
        return TESS_OK;
    *settled = fmin(sqrt(more / fit->squared), MOST_ERROR * p->high);
    const tess_settle_settings settings = {.weight =
                                               pow(fmax(fit->noise, LEAST_NOISE * p->high) / *settled, 2),
                                           .low = tess_hidden_low(p),
                                           .high = tess_hidden_high(p),
                                           .inner = recipe->inner};
    return tess_settle(&w->term, &settings, w->vectors, error);
}

void tess_fit_note(const tess_problem *p, double misfit, double raised, double at_end,
                   const tess_common *common)
{
    char instead[80] = "", cut[160] = "";
    if (raised > 0)
        snprintf(instead, sizeof instead, "; it is computed with a noise of %.3g, which avoids most rings",
                 raised * p->unit);
    if (at_end >= CUT_OFF)
        snprintf(
            cut, sizeof cut,
            "; %.0f values of the result are cut off at %.4g, the end of its range: if the sharp picture may "
            "be brighter, give \"range\": [%.4g, largest value]; else",
            at_end, p->offset + tess_problem_top(p) * p->unit, p->offset + p->low * p->unit);
    tess_note(common, TESS_NOTE_WARNING,
              "%s: the result differs from what was measured by %.0f times the noise%s%s%s are highlights "
              "cut off, was a frame or mask added after the blur, are values gamma encoded, is the kernel "
              "another one, or \"noise\" in another unit?",
              p->measurement, misfit, instead, cut, cut[0] ? "," : ":");
}
