/* schedule.h: the numbers that change from step to step: learning rate, Adam's corrections, decay of the moving
 * average, loss scale. They depend only on the configuration and on a small state, which is plain data, so that a
 * checkpoint holds it and a resumed run continues with the same bits. */
#ifndef TESS_TRAIN_SCHEDULE_H
#define TESS_TRAIN_SCHEDULE_H

#include "train/config.h"

typedef struct tess_train_state {
    int64_t step; /* steps done: the next step has this number */
    int64_t
        updates; /* of them, those that changed the parameters; a step whose gradients overflow does not */
    uint64_t seed;
    double loss_scale;   /* 1 unless the precision is fp16 */
    int64_t scale_steps; /* good steps since the loss scale changed */
    double plateau_best, plateau_factor;
    int64_t plateau_bad;    /* validations without improvement */
    double best_psnr;       /* -infinity: there was no validation */
    int64_t best_step;      /* at which it was reached */
    double seconds;         /* of all parts of the run */
    double loss, norm;      /* of the last step */
    int64_t validated_step; /* of the last validation */
} tess_train_state;

/* `scaled`: gradients are computed in fp16, and need a loss scale. */
void tess_train_state_init(tess_train_state *state, const tess_train_config *config, bool scaled);

/* Learning rate of the next step. */
double tess_train_rate_of(const tess_train_config *config, const tess_train_state *state);
/* Decay of the average at a step: min(decay, (1 + step) / (10 + step)), so that the first steps do not weigh too much. */
double tess_train_decay_of(const tess_train_config *config, int64_t step);
/* Fills TESS_CONTROLS values for the next step. */
void tess_train_control(const tess_train_config *config, const tess_train_state *state, double *control);

/* Counts a step. `updated`: its gradients were finite. False when the loss scale cannot become smaller: training cannot go
 * on. */
bool tess_train_state_advance(tess_train_state *state, bool scaled, bool updated);
/* Takes the result of a validation (mean PSNR in dB). Returns whether it is the best so far. */
bool tess_train_state_validated(const tess_train_config *config, tess_train_state *state, double psnr);

/* Numbers that JSON cannot hold exactly are written as hexadecimal text. NULL: no memory. */
tess_json *tess_train_state_json(const tess_train_state *state);
tess_status tess_train_state_read(const tess_json *json, tess_train_state *out,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
