#include "train/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The loss scale starts high: the first steps, whose gradients overflow, are skipped until it fits. It doubles after
 * GOOD steps without overflow, as PyTorch's GradScaler. */
static const double FIRST_SCALE = 0x1p16, LARGEST_SCALE = 0x1p24, SMALLEST_SCALE = 0x1p-14;
enum { GOOD = 2000 };
/* A validation counts as better if it is this much better, relatively, as in PyTorch's ReduceLROnPlateau. */
static const double BETTER = 1e-4;

void tess_train_state_init(tess_train_state *state, const tess_train_config *config, bool scaled)
{
    *state = (tess_train_state){.seed = config->seed,
                                .loss_scale = scaled ? FIRST_SCALE : 1,
                                .plateau_best = -INFINITY,
                                .plateau_factor = 1,
                                .best_psnr = -INFINITY};
}

/* Share of the configured rate, without warm-up. */
static double share_of(const tess_train_config *config, const tess_train_state *state)
{
    const double pi = 3.14159265358979323846, final = config->schedule.final;
    switch (config->schedule.kind) {
    case TESS_RATE_CONSTANT:
        return 1;
    case TESS_RATE_COSINE: {
        const double t = fmin(1, (double)state->step / (double)config->steps);
        return final + (1 - final) * 0.5 * (1 + cos(pi * t));
    }
    case TESS_RATE_STEP:
        return fmax(final, pow(config->schedule.factor, (double)(state->step / config->schedule.every)));
    case TESS_RATE_PLATEAU:
        return fmax(final, state->plateau_factor);
    }
    return 1;
}

double tess_train_rate_of(const tess_train_config *config, const tess_train_state *state)
{
    const int64_t warmup = config->schedule.warmup;
    const double warm = state->step < warmup ? (double)(state->step + 1) / (double)warmup : 1;
    return config->optimizer.rate * warm * share_of(config, state);
}

double tess_train_decay_of(const tess_train_config *config, int64_t step)
{
    return fmin(config->average, (1 + (double)step) / (10 + (double)step));
}

void tess_train_control(const tess_train_config *config, const tess_train_state *state, double *control)
{
    const tess_op_optimize optimize = tess_train_config_optimize(config);
    const double updates = (double)(state->updates + 1);
    memset(control, 0, TESS_CONTROLS * sizeof *control);
    control[TESS_CONTROL_RATE] = tess_train_rate_of(config, state);
    control[TESS_CONTROL_CORRECTION1] = 1 - pow(optimize.beta1, updates);
    control[TESS_CONTROL_CORRECTION2] = 1 - pow(optimize.beta2, updates);
    control[TESS_CONTROL_LOSS_SCALE] = state->loss_scale;
    control[TESS_CONTROL_DECAY] = tess_train_decay_of(config, state->step);
    control[TESS_CONTROL_STEP] = (double)state->step;
}

bool tess_train_state_advance(tess_train_state *state, bool scaled, bool updated)
{
    state->step++;
    state->updates += updated;
    if (!scaled)
        return updated;
    if (!updated) {
        state->loss_scale /= 2;
        state->scale_steps = 0;
    } else if (++state->scale_steps == GOOD) {
        state->loss_scale = fmin(2 * state->loss_scale, LARGEST_SCALE);
        state->scale_steps = 0;
    }
    return state->loss_scale >= SMALLEST_SCALE;
}

bool tess_train_state_validated(const tess_train_config *config, tess_train_state *state, double psnr)
{
    /* PSNR may be negative at the start, where a relative difference would have the wrong sign. */
    const double margin = isfinite(state->plateau_best) ? BETTER * fabs(state->plateau_best) : 0;
    if (psnr > state->plateau_best + margin) {
        state->plateau_best = psnr;
        state->plateau_bad = 0;
    } else if (++state->plateau_bad > config->schedule.patience) {
        state->plateau_factor *= config->schedule.factor;
        state->plateau_bad = 0;
    }
    state->validated_step = state->step;
    if (!(psnr > state->best_psnr))
        return false;
    state->best_psnr = psnr;
    state->best_step = state->step;
    return true;
}

/* ------------------------------------------------------------ as JSON */

/* Each number of the state, with its name in a checkpoint. */
typedef struct number {
    const char *name;
    size_t offset;
    bool real, optional; /* optional: a checkpoint of an earlier version lacks it */
} number;
#define AT(member) offsetof(tess_train_state, member)
static const number numbers[] = {
    {"step", AT(step), false, false},
    {"updates", AT(updates), false, false},
    {"seed", AT(seed), false, false},
    {"loss_scale", AT(loss_scale), true, false},
    {"scale_steps", AT(scale_steps), false, false},
    {"plateau_best", AT(plateau_best), true, false},
    {"plateau_factor", AT(plateau_factor), true, false},
    {"plateau_bad", AT(plateau_bad), false, false},
    {"best_psnr", AT(best_psnr), true, false},
    {"best_step", AT(best_step), false, false},
    {"seconds", AT(seconds), true, false},
    {"loss", AT(loss), true, true},
    {"gradient_norm", AT(norm), true, true},
    {"validated_step", AT(validated_step), false, true},
};

tess_json *tess_train_state_json(const tess_train_state *state)
{
    tess_json *object = tess_json_object();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const void *from = (const char *)state + numbers[i].offset;
        char text[64];
        if (numbers[i].real)
            snprintf(text, sizeof text, "%a", *(const double *)from);
        else
            snprintf(text, sizeof text, "%" PRId64, *(const int64_t *)from);
        tess_json_set_string(&object, numbers[i].name, text);
    }
    return object;
}

tess_status tess_train_state_read(const tess_json *json, tess_train_state *out, tess_error *error)
{
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const char *text = tess_json_get_string(json, numbers[i].name, "");
        void *to = (char *)out + numbers[i].offset;
        char *end;
        if (numbers[i].optional && !*text)
            continue;
        if (numbers[i].real)
            *(double *)to = strtod(text, &end);
        else
            *(int64_t *)to = strtoll(text, &end, 10);
        if (end == text || *end)
            return tess_fail(error, TESS_BAD_INPUT, "its state lacks the number %s", numbers[i].name);
    }
    if (out->step < 0 || out->updates < 0 || out->updates > out->step || !(out->loss_scale > 0))
        return tess_fail(error, TESS_BAD_INPUT, "its state is impossible (step %lld, %lld updates)",
                         (long long)out->step, (long long)out->updates);
    return TESS_OK;
}
