/* train_cases.h: ten steps of each optimizer, and losses, as PyTorch computed them (bench/peers/make_train_dumps.py),
 * and averages of parameters; for every device. */
#ifndef TESS_TESTS_TRAIN_CASES_H
#define TESS_TESTS_TRAIN_CASES_H

#include "op_dumps.h"
#include "train_run.h"

enum { TRAIN_STEPS = 10 };

/* The number that was rounded to fp32: PyTorch computed with 0.999, not with 0.99900001. */
static inline double decimal(float value)
{
    char text[32];
    snprintf(text, sizeof text, "%.6g", (double)value);
    return strtod(text, NULL);
}

static inline double farthest(const float *a, const float *b, int64_t count)
{
    double most = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs((double)a[i] - (double)b[i]);
        most = d <= most ? most : d;
    }
    return most;
}

/* Settings of a case: kind, rate, beta1, beta2, epsilon, weight decay, momentum, nesterov, clip. */
static inline tess_op_optimize optimizer_of(const float *s)
{
    return (tess_op_optimize){.kind = (tess_optimizer)s[0],
                              .beta1 = decimal(s[2]),
                              .beta2 = decimal(s[3]),
                              .epsilon = decimal(s[4]),
                              .weight_decay = decimal(s[5]),
                              .momentum = decimal(s[6]),
                              .nesterov = s[7] > 0,
                              .clip = decimal(s[8])};
}

/* `scale`: of the gradients, as mixed precision has it. */
static inline void check_optimizer(tess_device *device, op_dumps *dumps, int index, double scale,
                                   double bound)
{
    const tess_weight *all;
    float *settings = dumps_values(dumps, index, "settings", NULL),
          *values = dumps_values(dumps, index, "start", NULL),
          *gradients = dumps_values(dumps, index, "gradients", &all),
          *want = dumps_values(dumps, index, "out", NULL);
    const int64_t count = all->elements / TRAIN_STEPS;
    float *first = calloc((size_t)count, sizeof *first), *second = calloc((size_t)count, sizeof *second);
    double control[TESS_CONTROLS] = {0}, squares;
    const tess_op_optimize optimize = optimizer_of(settings);
    train_call call = {.op = {.kind = TESS_OP_OPTIMIZE, .inputs = 3, .optimize = optimize}};
    call.op.outputs = optimize.kind == TESS_SGD ? 2 : 3;
    const tess_tensor flat = vector_of(TESS_F32, count);
    call.op.in[0] = call.op.out[0] = call.op.out[1] = call.op.out[2] = flat;
    call.op.in[1] = vector_of(TESS_F64, TESS_CONTROLS);
    call.op.in[2] = vector_of(TESS_F64, 1);
    call.in[1].f = over_memory(control, TESS_CONTROLS, TESS_F64);
    call.in[2].f = over_memory(&squares, 1, TESS_F64);
    call.out[0].f = over_memory(values, count, TESS_F32);
    call.out[1].f = over_memory(first, count, TESS_F32);
    call.out[2].f = over_memory(second, count, TESS_F32);
    for (int step = 0; step < TRAIN_STEPS; step++) {
        float *gradient = gradients + step * count;
        squares = 0;
        for (int64_t i = 0; i < count; i++) {
            gradient[i] *= (float)scale;
            squares += (double)gradient[i] * (double)gradient[i];
        }
        call.in[0].f = over_memory(gradient, count, TESS_F32);
        control[TESS_CONTROL_RATE] = decimal(settings[1]) * (1 - step / (double)TRAIN_STEPS);
        control[TESS_CONTROL_CORRECTION1] = 1 - pow(optimize.beta1, step + 1);
        control[TESS_CONTROL_CORRECTION2] = 1 - pow(optimize.beta2, step + 1);
        control[TESS_CONTROL_LOSS_SCALE] = scale;
        train_update(device, &call, dumps_name(dumps, index));
        const double most = farthest(values, want + step * count, count);
        CHECK_MSG(most <= bound, "%s, scale %g, step %d: %g", dumps_name(dumps, index), scale, step, most);
    }
    /* Gradients that overflowed: the step is skipped. */
    float *before = malloc((size_t)count * sizeof *before);
    memcpy(before, values, (size_t)count * sizeof *before);
    squares = index % 2 ? INFINITY : NAN;
    train_update(device, &call, dumps_name(dumps, index));
    CHECK(memcmp(before, values, (size_t)count * sizeof *before) == 0);
    free(before), free(settings), free(values), free(gradients), free(want), free(first), free(second);
}

static inline void check_optimizers(tess_device *device, double bound)
{
    op_dumps dumps;
    if (!dumps_open("optimize.safetensors", &dumps))
        return;
    for (int i = 0; i < dumps_count(&dumps); i++) {
        check_optimizer(device, &dumps, i, 1, bound);
        check_optimizer(device, &dumps, i, 1024, bound);
    }
    dumps_close(&dumps);
}

static inline void check_average(tess_device *device)
{
    enum { COUNT = 20011 };
    static float average[COUNT], values[COUNT], want[COUNT];
    double control[TESS_CONTROLS] = {0}, squares = 1;
    control[TESS_CONTROL_DECAY] = 0.99;
    tess_rng_normal((tess_rng_key){5, 1, 0}, 0, COUNT, average);
    tess_rng_normal((tess_rng_key){5, 2, 0}, 0, COUNT, values);
    for (int64_t i = 0; i < COUNT; i++)
        want[i] = (float)(0.99 * (double)average[i] + 0.01 * (double)values[i]);
    train_call call = {.op = {.kind = TESS_OP_AVERAGE, .inputs = 3, .outputs = 1}};
    call.op.in[0] = call.op.out[0] = vector_of(TESS_F32, COUNT);
    call.op.in[1] = vector_of(TESS_F64, TESS_CONTROLS);
    call.op.in[2] = vector_of(TESS_F64, 1);
    call.in[0].f = over_memory(values, COUNT, TESS_F32);
    call.in[1].f = over_memory(control, TESS_CONTROLS, TESS_F64);
    call.in[2].f = over_memory(&squares, 1, TESS_F64);
    call.out[0].f = over_memory(average, COUNT, TESS_F32);
    train_update(device, &call, "average");
    CHECK_MSG(farthest(average, want, COUNT) <= 1e-6, "average: %g", farthest(average, want, COUNT));
    memcpy(want, average, sizeof want);
    squares = INFINITY;
    train_update(device, &call, "average of a skipped step");
    CHECK(memcmp(want, average, sizeof want) == 0);
}

/* One loss of the file, in channels of a wider storage if `gap`; added to 0.5 if `accumulate`. */
static inline void check_loss(tess_device *device, op_dumps *dumps, int index, int gap, bool accumulate)
{
    static const char *const parts[] = {"in", "target", NULL, "mask"};
    float *settings = dumps_values(dumps, index, "settings", NULL),
          *value = dumps_values(dumps, index, "out", NULL);
    double control[TESS_CONTROLS] = {0}, loss = 0.5;
    const double share = accumulate ? 0.25 : 1, scale = accumulate ? 128 : 1;
    control[TESS_CONTROL_LOSS_SCALE] = scale;
    train_call call = {.op = {.kind = TESS_OP_LOSS,
                              .inputs = dumps_has(dumps, index, "mask") ? 4 : 3,
                              .outputs = 2,
                              .loss = {(tess_loss)settings[0], decimal(settings[1]), share, accumulate}}};
    tess_tensor dense;
    for (int i = 0; i < call.op.inputs; i++) {
        if (i == 2)
            continue;
        field values = dumps_field(dumps, index, parts[i], TESS_F32, &dense);
        call.op.in[i] = strided(TESS_F32, dense.n, dense.h, dense.w, dense.c, gap);
        call.in[i].f = random_field(&call.op.in[i], (uint32_t)i);
        for (int64_t p = 0; p < dense.n * dense.h * dense.w; p++)
            memcpy((float *)call.in[i].f.data + p * (dense.c + gap), (float *)values.data + p * dense.c,
                   (size_t)dense.c * sizeof(float));
        free(values.data);
    }
    call.op.in[2] = vector_of(TESS_F64, TESS_CONTROLS);
    call.in[2].f = over_memory(control, TESS_CONTROLS, TESS_F64);
    call.op.out[0] = call.op.in[0];
    call.op.out[1] = vector_of(TESS_F64, 1);
    call.out[0].f = random_field(&call.op.out[0], 9);
    call.out[1].f = over_memory(&loss, 1, TESS_F64);
    field want = random_field(&call.op.out[0], 9),
          gradient = dumps_field(dumps, index, "gradient", TESS_F32, &dense);
    for (int64_t i = 0; i < dense.n * dense.h * dense.w * dense.c; i++)
        ((float *)want.data)[i / dense.c * (dense.c + gap) + i % dense.c] =
            ((float *)gradient.data)[i] * (float)(share * scale);
    train_update(device, &call, dumps_name(dumps, index));
    const double truth = share * (double)value[0] + (accumulate ? 0.5 : 0);
    CHECK_MSG(fabs(loss - truth) <= 1e-6 * fabs(truth), "%s: loss %.9g, not %.9g", dumps_name(dumps, index),
              loss, truth);
    double largest = 0;
    for (int64_t i = 0; i < dense.n * dense.h * dense.w * dense.c; i++)
        largest = fmax(largest, fabs((double)((float *)gradient.data)[i]) * share * scale);
    const double most = farthest(call.out[0].f.data, want.data, (int64_t)(want.bytes / sizeof(float)));
    CHECK_MSG(most <= 1e-6 * largest, "%s: gradient %g of %g", dumps_name(dumps, index), most, largest);
    for (int i = 0; i < call.op.inputs; i++)
        if (i != 2)
            free(call.in[i].f.data);
    free(call.out[0].f.data), free(want.data), free(gradient.data), free(settings), free(value);
}

static inline void check_losses(tess_device *device)
{
    op_dumps dumps;
    if (!dumps_open("loss.safetensors", &dumps))
        return;
    for (int i = 0; i < dumps_count(&dumps); i++)
        for (int variant = 0; variant < 4; variant++)
            check_loss(device, &dumps, i, variant % 2 ? 3 : 0, variant > 1);
    dumps_close(&dumps);
}

#endif
