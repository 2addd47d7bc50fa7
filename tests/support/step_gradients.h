/* step_gradients.h: the gradients of a whole training step against differences of the loss. At rate 1, without momentum,
 * SGD subtracts the gradient from the parameters. For each parameter tensor, the loss is computed at two points on
 * a line; the line's direction is partly the gradient, so that the difference is well above rounding, and partly
 * random, so that a gradient that is wrong in other directions shows too. */
#ifndef TESS_TESTS_STEP_GRADIENTS_H
#define TESS_TESTS_STEP_GRADIENTS_H

#include "step_run.h"

static inline double step_loss_at(step_run *run, const float *start, const tess_parameter *one,
                                  const float *direction, double distance, float *moved)
{
    memcpy(moved, start, (size_t)run->parameters->trained * sizeof *moved);
    for (int64_t k = 0; k < one->elements; k++)
        moved[one->offset + k] += (float)(distance * (double)direction[k]);
    step_set(run, TESS_STATE_PARAMETERS, moved);
    step_passes(run, 0, 0, false);
    return run->loss;
}

static inline double step_length(const float *values, int64_t count)
{
    double sum = 0;
    for (int64_t k = 0; k < count; k++)
        sum += (double)values[k] * (double)values[k];
    return sqrt(sum);
}

/* Compares along one of several lines. `whole`: the length of the gradient of all parameters. */
static inline void check_line(step_run *run, const char *name, const tess_parameter *one, const float *start,
                              const float *gradient, double whole, uint32_t line)
{
    const int64_t count = one->elements;
    const float *g = gradient + one->offset;
    float *direction = step_room((size_t)count, sizeof *direction),
          *moved = step_room((size_t)run->parameters->trained, sizeof *moved);
    tess_rng_normal((tess_rng_key){21, line, 0}, 0, count, direction);
    const double random = step_length(direction, count), length = step_length(g, count);
    double want = 0, most = 0;
    for (int64_t k = 0; k < count; k++) {
        direction[k] = (float)((double)direction[k] / random + (length > 0 ? (double)g[k] / length : 0));
        want += (double)direction[k] * (double)g[k];
        most = fmax(most, fabs((double)direction[k]));
    }
    /* Far enough for rounding, near enough for curvature. */
    const double distance = fmin(2e-4 * run->loss / fmax(length, 1e-9), 2e-4 / most);
    const double got = (step_loss_at(run, start, one, direction, distance, moved) -
                        step_loss_at(run, start, one, direction, -distance, moved)) /
                       (2 * distance);
    CHECK_MSG(fabs(got - want) <= 0.01 * length + 5e-4 * whole,
              "%s: %s: derivative %.7g, difference %.7g (%.3g of %.3g)", name, one->name, want, got, length,
              whole);
    free(direction), free(moved);
}

/* Compares along `lines` lines for each parameter tensor. */
static inline void check_gradients(tess_device *device, const step_net *what,
                                   const tess_training_settings *settings, uint32_t lines)
{
    if (!step_trains(device, what))
        return;
    tess_net *net = step_net_make(what);
    step_run run;
    if (step_open(&run, device, net, settings, what->name)) {
        const int64_t count = run.parameters->trained;
        float *start = step_state(&run, TESS_STATE_PARAMETERS);
        step_passes(&run, 0, 1, true);
        float *gradient = step_state(&run, TESS_STATE_PARAMETERS);
        for (int64_t k = 0; k < count; k++)
            gradient[k] = start[k] - gradient[k];
        const double whole = step_length(gradient, count), loss = run.loss;
        CHECK_MSG(whole > 1e-3 && loss > 1e-3 && fabs(run.norm - whole) <= 1e-5 * whole,
                  "%s: loss %g, norm %g, length of the change %g", what->name, run.loss, run.norm, whole);
        for (int i = 0; i < run.parameters->count; i++)
            for (uint32_t k = 0; k < lines && !run.parameters->list[i].running; k++) {
                run.loss = loss;
                check_line(&run, what->name, &run.parameters->list[i], start, gradient, whole, k);
            }
        free(start), free(gradient);
        step_close(&run);
    }
    tess_net_destroy(net);
}

/* All networks with one batch. */
static inline void check_gradients_of_kinds(tess_device *device, int64_t n, int64_t side, uint32_t lines)
{
    for (int i = 0; i < STEP_NETS; i++) {
        const tess_training_settings settings = step_settings(n, side, step_nets[i].depth);
        check_gradients(device, &step_nets[i], &settings, lines);
    }
}

static inline void check_all_gradients(tess_device *device)
{
    check_gradients_of_kinds(device, 2, 12, 2);
    for (int i = 0; i < STEP_NETS; i++) {
        tess_training_settings settings = step_settings(1, 16, step_nets[i].depth);
        settings.micro_batches = 2; /* each with its own data */
        settings.recompute = TESS_RECOMPUTE_BLOCKS;
        check_gradients(device, &step_nets[i], &settings, 1);
    }
    const tess_loss losses[] = {TESS_L1,         TESS_CHARBONNIER, TESS_MASKED_MSE,
                                TESS_BCE_LOGITS, TESS_RMSE,        TESS_PSNR};
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        tess_training_settings settings = step_settings(2, 12, 0);
        settings.loss = (tess_op_loss){.kind = losses[i], .epsilon = 1e-3};
        check_gradients(device, step_net_named("plain"), &settings, 1);
    }
}

#endif
