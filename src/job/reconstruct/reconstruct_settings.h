/* reconstruct_settings.h: the recipe of a solver, from a preset and the settings. */
#ifndef TESS_JOB_RECONSTRUCT_SETTINGS_H
#define TESS_JOB_RECONSTRUCT_SETTINGS_H

#include "job/reconstruct/problem.h"
#include "model/model.h"

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

/* What the preset and the options make together. */
typedef struct tess_recipe {
    tess_init init;
    int64_t iterations;
    double sigma, last_sigma, relax, noise;
    tess_noise_from noise_from;
    int64_t inner;        /* conjugate gradients in place of a gradient step */
    double step;          /* 0: from the norm */
    bool absolute_power;  /* the power method stops by an absolute change, as
                           deepinv's does */
    bool peak_normalised; /* the start is scaled to the truth's peak */
    bool saturating_psnr; /* PSNR with 1e-8 added to the error */
    bool volume;          /* the prior is a 3-D network; else volumes go slice by slice */
    tess_inflation inflation;
} tess_recipe;

/* Steps of conjugate gradients, at most, for a start by them; and of the power method. */
enum { TESS_START_CG = 50, TESS_START_POWER = 100 };

tess_status tess_reconstruct_check(const tess_reconstruct_settings *settings,
                                   tess_error *error) TESS_MUST_CHECK;
/* What the preset says of such a problem, then what the settings say. */
tess_status tess_recipe_of(const tess_reconstruct_settings *settings, const tess_problem *problem,
                           tess_recipe *recipe, tess_error *error) TESS_MUST_CHECK;

#endif
