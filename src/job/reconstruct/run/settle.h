/* settle.h: the last step of measured blurs, from the network's picture towards the data (solve/settle.h). */
#ifndef TESS_JOB_RECONSTRUCT_RUN_SETTLE_H
#define TESS_JOB_RECONSTRUCT_RUN_SETTLE_H

#include "job/reconstruct/reconstruct_settings.h"
#include "job/reconstruct/run/quality.h"

/* How a picture fits the data. */
typedef struct tess_fit {
    double square, squared; /* of the gradient; of the normal operator: solve/settle.h */
    double explained;       /* of the gradient's square, by the noise; 0: was not looked at */
    double noise;           /* its level, as the picture shows it */
    bool
        unsure; /* a slight blur, which leaves much texture; or too few data: the margins can explain anything */
} tess_fit;

/* Whether a result is compared with the data at all: those of measured blurs are. */
bool tess_fit_is_judged(const tess_problem *problem, const tess_recipe *recipe);
/* Collective. Looks at the picture in vectors[0] of the workspace. */
tess_status tess_reconstruct_look_at_fit(const tess_judge *judge, const tess_recipe *recipe, tess_fit *fit,
                                         tess_error *error) TESS_MUST_CHECK;
/* How many times the gradient is what noise explains, if that is far from what networks leave; otherwise 0: more steps are worth their
 * time. */
double tess_fit_ratio(const tess_fit *fit);
/* The same where not even weak noise would explain it; otherwise 0: the data do not fit the kernel, and a picture that fits them has rings
 * around whatever is wrong. */
double tess_fit_misfit(const tess_fit *fit, const tess_problem *problem);
/* The noise with which such data give a picture as good as they are. */
double tess_fit_raised_noise(const tess_fit *fit, double misfit, const tess_problem *problem);
/* Collective. Changes vectors[0] of the workspace if its picture differs from the data by more than their noise; then
 * `settled` is the network's own error. */
tess_status tess_reconstruct_settle(const tess_judge *judge, const tess_recipe *recipe, const tess_fit *fit,
                                    double *settled, tess_error *error) TESS_MUST_CHECK;

/* Says that blurs do not fit; `raised`: the noise that was used instead, 0: none; `at_end`: values of the result at the end of its range. */
void tess_fit_note(const tess_problem *problem, double misfit, double raised, double at_end,
                   const tess_common *common);

#endif
