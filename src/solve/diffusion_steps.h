/* diffusion_steps.h: the steps of a sampler as rows of factors for the op DIFFUSE (op/op.h), in double precision. A step takes
 * y at the noise level gamma to the next one, gamma'; the last step goes to gamma' = 1, where y is the result. a = sqrt(gamma), s
 * = sqrt(1 - gamma), lambda = ln(a / s), h = lambda' - lambda.
 *
 *   all:   x0 = clamp(y / a - sqrt(1 / gamma - 1) e)
 *   DDPM:  y' = beta a' / (1 - gamma) x0 + (1 - gamma') sqrt(1 - beta) / (1 - gamma) y + sqrt(beta (1 - gamma') / (1 - gamma)) z,
 *          every step of the schedule (Ho et al. 2020, eq. 6 and 7)
 *   DDIM:  y' = a' x0 + sqrt(1 - gamma' - sigma^2) (y - a x0) / s + sigma z, sigma = eta sqrt((1 - gamma') / (1 - gamma) (1 -
 *          gamma / gamma')) (Song et al. 2021, eq. 12 and 16)
 *   DPMPP: y' = (s' / s) y - a' (exp(-h) - 1) D, D = (1 + 1 / (2 r)) x0 - 1 / (2 r) x0 of the step before, r = h before / h (Lu et al.
 *          2022, 2M); the first and the last step take D = x0
 *
 * DDIM and DPMPP need no grid of training: the network is given gamma itself, so that their steps lie anywhere. */
#ifndef TESS_SOLVE_DIFFUSION_STEPS_H
#define TESS_SOLVE_DIFFUSION_STEPS_H

#include "op/op.h"
#include "solve/diffusion_schedule.h"

typedef enum tess_sampler_kind {
    TESS_SAMPLER_DDPM,
    TESS_SAMPLER_DDIM,
    TESS_SAMPLER_DPMPP,
    TESS_SAMPLER_KINDS
} tess_sampler_kind;

/* How the steps of DDIM and DPMPP are spaced: evenly in lambda, or evenly over the steps of the schedule. */
typedef enum tess_step_spacing { TESS_SPACED_LAMBDA, TESS_SPACED_TIME } tess_step_spacing;

/* The least gamma of the usual training schedule (linear, 2000 steps, 1e-6 to 0.01): a network has seen none below, and
 * steps that are even in lambda would be wasted there. */
#define TESS_GAMMA_TRAINED 4.386e-5

typedef struct tess_steps_settings {
    tess_sampler_kind kind;
    const tess_diffusion_schedule *schedule;
    int64_t count; /* evaluations of the network; DDPM: 0, or the steps of the schedule */
    double eta;    /* DDIM: 0 deterministic, 1 as much noise as DDPM */
    tess_step_spacing spacing;
    /* 0: from pure noise. Else in (0, 1): from a first guess x, y = sqrt(gamma) x + sqrt(1 - gamma) z, at this gamma
     * (DDPM: at the first step of the schedule that is not noisier). */
    double start_gamma;
    double least_gamma;    /* LAMBDA: steps from pure noise begin at this gamma, or where the schedule ends if
                           that is more; 0: TESS_GAMMA_TRAINED */
    bool noise_everywhere; /* known pixels are noise, too, in the first step, as in Palette; else clean from
                              the start, as in training */
} tess_steps_settings;

/* Values of y are in [-1, 1]. */
typedef struct tess_sampler_steps {
    int64_t count;
    double *gammas;                      /* of each evaluation, rising */
    double *rows;                        /* count times TESS_DIFFUSE_CONTROLS */
    double start[TESS_DIFFUSE_CONTROLS]; /* the first y, from a guess in y, or from nothing */
} tess_sampler_steps;

const char *tess_sampler_name(tess_sampler_kind kind);
/* Owned by the caller: tess_steps_clear. Noise of the start has STEP 0, that of row i has STEP i + 1. */
tess_status tess_steps_make(const tess_steps_settings *settings, tess_sampler_steps *out,
                            tess_error *error) TESS_MUST_CHECK;
void tess_steps_clear(tess_sampler_steps *steps);

#endif
