/* step_run.h: a training of a small network with random parameters and data, and its steps. */
#ifndef TESS_TESTS_STEP_RUN_H
#define TESS_TESTS_STEP_RUN_H

#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "counter.h"
#include "device/device.h"
#include "net/training.h"
#include "net/training/training_impl.h"
#include "step_nets.h"

typedef struct step_run {
    tess_device *device;
    const tess_net *net;
    tess_training *training;
    tess_training_settings settings;
    const tess_parameters *parameters;
    double loss, norm; /* of the last step */
} step_run;

static inline void *step_room(size_t count, size_t size)
{
    void *data = calloc(count ? count : 1, size);
    if (!data)
        abort();
    return data;
}

/* Plain SGD: at rate 1 the parameters change by their gradients. */
static inline tess_training_settings step_settings(int64_t n, int64_t side, int64_t depth)
{
    return (tess_training_settings){.dtype = TESS_F32,
                                    .n = n,
                                    .h = side,
                                    .w = side,
                                    .d = depth,
                                    .micro_batches = 1,
                                    .recompute_blocks = TESS_RECOMPUTE_EVERYWHERE,
                                    .pair_gradients = true,
                                    .loss = {.kind = TESS_MSE},
                                    .optimize = {.kind = TESS_SGD}};
}

static inline void step_get(step_run *run, tess_training_state state, float *values)
{
    tess_error error = {{0}};
    const int64_t count = tess_training_state_size(run->training, state);
    CHECK_MSG(tess_training_get(run->training, state, 0, count, values, &error) == TESS_OK, "%s", error.text);
}

static inline void step_set(step_run *run, tess_training_state state, const float *values)
{
    tess_error error = {{0}};
    const int64_t count = tess_training_state_size(run->training, state);
    CHECK_MSG(tess_training_set(run->training, state, 0, count, values, &error) == TESS_OK, "%s", error.text);
}

/* The values of a state; to be freed. */
static inline float *step_state(step_run *run, tess_training_state state)
{
    float *values = step_room((size_t)tess_training_state_size(run->training, state), sizeof *values);
    if (tess_training_state_size(run->training, state))
        step_get(run, state, values);
    return values;
}

/* Sets random parameters: kernels that keep the size of values, norms near the identity. */
static inline void step_start(step_run *run)
{
    const tess_parameters *p = run->parameters;
    float *blocks[2] = {step_room((size_t)p->trained, sizeof(float)),
                        step_room((size_t)p->running, sizeof(float))};
    for (int i = 0; i < p->count; i++) {
        const tess_parameter *one = &p->list[i];
        float *to = blocks[one->running] + one->offset;
        const bool weight = strstr(one->name, ".weight") != NULL, kernel = one->rank > 1;
        const float scale = kernel ? sqrtf(1.5f / (float)(one->elements / one->dims[0])) : 0.2f;
        tess_rng_normal((tess_rng_key){5, (uint32_t)i, 0}, 0, one->elements, to);
        for (int64_t k = 0; k < one->elements; k++)
            to[k] = strstr(one->name, ".running_") ? (strstr(one->name, "var") ? 1.0f : 0.0f)
                                                   : scale * to[k] + (weight && !kernel ? 1.0f : 0.0f);
    }
    step_set(run, TESS_STATE_PARAMETERS, blocks[0]);
    if (tess_training_state_size(run->training, TESS_STATE_AVERAGE))
        step_set(run, TESS_STATE_AVERAGE, blocks[0]);
    if (p->running)
        step_set(run, TESS_STATE_RUNNING, blocks[1]);
    free(blocks[0]), free(blocks[1]);
}

/* Fills a block with NaN: whatever is read before it is written shows. */
static inline void step_spoil(step_run *run, const tess_block *block)
{
    void *values = step_room(block->bytes, 1);
    tess_error error = {{0}};
    memset(values, 0xff, block->bytes);
    if (block->bytes)
        run->device->memory->copy(run->device, block->data, values, block->bytes, NULL);
    CHECK_MSG(run->device->streams->sync(run->device, NULL, &error) == TESS_OK, "%s", error.text);
    free(values);
}

static inline bool step_open(step_run *run, tess_device *device, const tess_net *net,
                             const tess_training_settings *settings, const char *name)
{
    tess_error error = {{0}};
    *run = (step_run){.device = device, .net = net, .settings = *settings};
    const bool good = tess_training_create(net, device, settings, &run->training, &error) == TESS_OK &&
                      tess_training_prepare(run->training, &error) == TESS_OK;
    CHECK_MSG(good, "%s: %s", name, error.text);
    if (!good) {
        tess_training_destroy(run->training);
        return false;
    }
    run->parameters = tess_training_parameters(run->training);
    step_spoil(run, &run->training->blocks[TESS_IN_ARENA]);
    step_spoil(run, &run->training->workspace);
    step_start(run);
    return true;
}

static inline void step_close(step_run *run)
{
    tess_training_destroy(run->training);
    *run = (step_run){0};
}

/* Fills a tensor of the step's data with values of images [first, first + n) of a batch. */
static inline void step_fill(step_run *run, void *to, const tess_tensor *t, uint32_t item, uint32_t step,
                             int64_t first)
{
    const int64_t image = t->d * t->h * t->w * t->c;
    float *values = step_room((size_t)(t->n * image), sizeof *values);
    tess_error error = {{0}};
    CHECK(t->dtype == TESS_F32);
    tess_rng_uniform((tess_rng_key){9, item, step}, first * image, t->n * image, values);
    run->device->memory->copy(run->device, to, values, (size_t)(t->n * image) * sizeof *values, NULL);
    CHECK_MSG(run->device->streams->sync(run->device, NULL, &error) == TESS_OK, "%s", error.text);
    free(values);
}

static inline void step_data(step_run *run, uint32_t step, int micro)
{
    tess_tensor t;
    const int64_t first = run->settings.first + micro * run->settings.n;
    for (int i = 0; i < tess_net_input_count(run->net); i++) {
        void *in = tess_training_input(run->training, i, &t);
        step_fill(run, in, &t, (uint32_t)i, step, first);
    }
    void *to = tess_training_target(run->training, &t);
    if (to)
        step_fill(run, to, &t, 10, step, first);
    if ((to = tess_training_mask(run->training, &t)))
        step_fill(run, to, &t, 11, step, first);
}

/* Forward and backward passes of all micro-batches; the loss is run->loss afterwards. */
static inline void step_passes(step_run *run, uint32_t step, double rate, bool update)
{
    const tess_op_optimize *o = &run->settings.optimize;
    tess_error error = {{0}};
    double control[TESS_CONTROLS] = {0};
    control[TESS_CONTROL_RATE] = rate;
    control[TESS_CONTROL_CORRECTION1] = 1 - pow(o->beta1, step + 1.0);
    control[TESS_CONTROL_CORRECTION2] = 1 - pow(o->beta2, step + 1.0);
    control[TESS_CONTROL_LOSS_SCALE] = run->settings.dtype == TESS_F16 ? 256 : 1;
    control[TESS_CONTROL_DECAY] = 0.9;
    control[TESS_CONTROL_STEP] = step;
    bool good = true;
    for (int m = 0; m < run->settings.micro_batches; m++) {
        step_data(run, step, m);
        const uint64_t calls = tess_mem_calls();
        if (m == 0)
            tess_training_control(run->training, control, NULL);
        tess_training_pass(run->training, m, NULL);
        good = good && run->device->streams->sync(run->device, NULL, &error) == TESS_OK;
        CHECK(tess_mem_calls() == calls); /* nothing is allocated after prepare */
    }
    const uint64_t calls = tess_mem_calls();
    if (update)
        tess_training_update(run->training, NULL);
    good = good && tess_training_result(run->training, NULL, &run->loss, &run->norm, &error) == TESS_OK;
    CHECK(tess_mem_calls() == calls);
    CHECK_MSG(good, "%s", error.text);
}

static inline void step_steps(step_run *run, uint32_t first, uint32_t count, double rate)
{
    for (uint32_t step = first; step < first + count; step++)
        step_passes(run, step, rate, true);
}

#endif
