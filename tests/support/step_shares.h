/* step_shares.h: a step that ranks share: each computes a part of the batch, and gradients and losses add up to those of the batch. */
#ifndef TESS_TESTS_STEP_SHARES_H
#define TESS_TESTS_STEP_SHARES_H

#include "step_run.h"

/* What was said to be final, as it was then. */
typedef struct step_final {
    const step_run *run;
    float *values;
    int64_t from, calls;
} step_final;

static void step_on_ready(void *user, int64_t from)
{
    step_final *f = user;
    const float *gradients = tess_training_gradients(f->run->training);
    CHECK(from <= f->from);
    f->calls++;
    if (f->run->device->host_memory && from < f->from)
        memcpy(f->values + from, gradients + from, (size_t)(f->from - from) * sizeof *gradients);
    f->from = from;
}

/* The gradients of one pass; to be freed. */
static inline float *step_shared_pass(tess_device *device, const step_net *what,
                                      const tess_training_settings *settings, double *loss)
{
    tess_net *net = step_net_make(what);
    tess_error error = {{0}};
    step_run run;
    if (!step_open(&run, device, net, settings, what->name)) {
        tess_net_destroy(net);
        return NULL;
    }
    const int64_t count = run.parameters->trained;
    float *gradients = step_room((size_t)count, sizeof *gradients);
    const double control[TESS_CONTROLS] = {[TESS_CONTROL_LOSS_SCALE] = 1};
    step_final f = {&run, step_room((size_t)count, sizeof *f.values), count, 0};
    step_data(&run, 0, 0);
    tess_training_control(run.training, control, NULL);
    tess_training_last_pass(run.training, 0, step_on_ready, &f, NULL);
    device->memory->copy(device, gradients, tess_training_gradients(run.training),
                         (size_t)count * sizeof *gradients, NULL);
    CHECK_MSG(tess_training_result(run.training, NULL, loss, &run.norm, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(f.from == 0 && (f.calls > 1) == device->host_memory, "%s: %lld calls, the last from %lld",
              what->name, (long long)f.calls, (long long)f.from);
    CHECK_MSG(!device->host_memory || memcmp(f.values, gradients, (size_t)count * sizeof *gradients) == 0,
              "%s: gradients change that were said to be final", what->name);
    free(f.values);
    step_close(&run);
    tess_net_destroy(net);
    return gradients;
}

/* A batch of four, and parts of one and three. */
static inline void check_shares(tess_device *device)
{
    for (int i = 0; i < STEP_NETS; i++) {
        const step_net *what = &step_nets[i];
        if (what->batch_norm || !step_trains(device, what))
            continue;
        double losses[3] = {0};
        float *gradients[3];
        tess_net *net = step_net_make(what);
        tess_parameters parameters;
        CHECK(tess_parameters_list(net, &parameters, NULL) == TESS_OK);
        for (int k = 0; k < 3; k++) {
            tess_training_settings settings = step_settings(4, 12, what->depth);
            settings.n = (int64_t[]){4, 1, 3}[k];
            settings.first = k == 2;
            settings.share = (double)settings.n / 4;
            gradients[k] = step_shared_pass(device, what, &settings, &losses[k]);
        }
        double worst = 0, most = 0;
        for (int64_t k = 0; k < parameters.trained && gradients[0] && gradients[1] && gradients[2]; k++) {
            const double off = fabs((double)gradients[0][k] - gradients[1][k] - gradients[2][k]);
            worst = off <= worst ? worst : off; /* NaN counts */
            most = fmax(most, fabs((double)gradients[0][k]));
        }
        CHECK_MSG(most > 0 && worst <= 2e-5 * most, "%s in parts: gradients differ by %g of %g", what->name,
                  worst, most);
        CHECK_MSG(fabs(losses[0] - losses[1] - losses[2]) <= 1e-5 * losses[0],
                  "%s in parts: loss %g, and %g + %g", what->name, losses[0], losses[1], losses[2]);
        for (int k = 0; k < 3; k++)
            free(gradients[k]);
        tess_parameters_clear(&parameters);
        tess_net_destroy(net);
    }
}

#endif
