/* reconstruct_settings.h: the recipe of a solver, made from a preset and the settings. */
#ifndef TESS_JOB_RECONSTRUCT_SETTINGS_H
#define TESS_JOB_RECONSTRUCT_SETTINGS_H

#include "job/reconstruct/problem/problem.h"
#include "model/model.h"
#include "physics/filter.h"

typedef enum tess_init {
    TESS_INIT_ZERO,
    TESS_INIT_ADJOINT,
    TESS_INIT_FILTERED,
    TESS_INIT_CG,
    TESS_INIT_MEAN
} tess_init;

typedef enum tess_noise_from {
    TESS_NOISE_FROM_DEFAULT,
    TESS_NOISE_FROM_GIVEN,
    TESS_NOISE_FROM_DATA /* estimated */
} tess_noise_from;

/* The settings of the solver, from the preset and the options. */
typedef struct tess_recipe {
    tess_init init;
    int64_t iterations;
    double sigma, last_sigma, relax, noise;
    bool fixed_sigma;   /* given, or published: it does not follow the noise */
    tess_filter filter; /* of a filtered start; set when the noise is known (run/noise.h) */
    tess_noise_from noise_from;
    double given_noise;     /* where `noise` is more than that; otherwise 0 */
    bool least_noise;       /* the noise is the least for the range; the estimate is lower */
    double noise_of_pixels; /* an estimate without what is added for noise that is not white */
    int64_t inner;          /* steps of conjugate gradients that replace a gradient step */
    double step;            /* 0: from the norm */
    bool absolute_power;    /* the power method stops at an absolute change, as deepinv's does */
    bool peak_normalised;   /* the start is scaled to the truth's peak */
    bool saturating_psnr;   /* PSNR with 1e-8 added to the error */
    bool volume;            /* the prior is a 3-D network; otherwise volumes are denoised slice by slice */
    tess_inflation inflation;
} tess_recipe;

/* Most steps of conjugate gradients for the start, and of the power method. */
enum { TESS_START_CG = 50, TESS_START_POWER = 100 };

tess_status tess_reconstruct_check(const tess_reconstruct_settings *settings,
                                   tess_error *error) TESS_MUST_CHECK;
/* Takes the preset for the problem, then applies the settings. */
tess_status tess_recipe_of(const tess_reconstruct_settings *settings, const tess_problem *problem,
                           tess_recipe *recipe, tess_error *error) TESS_MUST_CHECK;
/* The noise that the weight of the data comes from: the recipe's, or more where its few inner steps need that. */
double tess_recipe_held_noise(const tess_recipe *recipe, const tess_problem *problem);

#endif
