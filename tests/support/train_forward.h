/* train_forward.h: ops of training that run forward, batch norm and noise, against their formulas in fp64, on any
 * device. */
#ifndef TESS_TESTS_TRAIN_FORWARD_H
#define TESS_TESTS_TRAIN_FORWARD_H

#include "gradient_bind.h"

typedef struct batch_case {
    const char *name;
    int64_t n, d, h, w, c;
    int gap;
    tess_activation activation;
    bool running;
    double above; /* added to the values: sums must not cancel */
} batch_case;

static const batch_case batch_cases[] = {
    {"batch-norm", 2, 1, 7, 9, 16, 0, TESS_RELU, true, 0},
    {"batch-norm-gap", 3, 1, 5, 4, 13, 3, TESS_LINEAR, true, 0},
    {"batch-norm-again", 2, 1, 5, 4, 70, 0, TESS_RELU, false, 0},
    {"batch-norm-volume", 1, 3, 5, 40, 8, 0, TESS_SILU, true, 0},
    {"batch-norm-large", 70, 1, 9, 11, 8, 0, TESS_RELU, true, 0},
    {"batch-norm-far", 1, 1, 130, 67, 4, 0, TESS_LINEAR, true, 300},
};

/* The largest difference of a vector, relative to the largest value. */
static inline void check_vector(const char *name, const char *part, const float *got, const double *want,
                                int64_t count)
{
    double most = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        const double d = fabs((double)got[i] - want[i]);
        most = d <= most ? most : d;
        largest = fmax(largest, fabs(want[i]));
    }
    CHECK_MSG(most <= 2e-6 * largest, "%s, %s: |a-b| %.3g of %.3g", name, part, most, largest);
}

static inline void check_batch_norm(tess_device *device, const batch_case *b, tess_dtype dtype, double bound)
{
    const gradient_case c = {.kind = TESS_OP_BATCH_NORM_GRAD,
                             .n = b->n,
                             .d = b->d,
                             .h = b->h,
                             .w = b->w,
                             .c = b->c,
                             .gap = b->gap};
    point p = point_of(&c, dtype);
    const int64_t channels = b->c, count = p.size[0] / channels;
    for (int64_t i = 0; i < p.size[0]; i++)
        p.variable[0][i] = seen_as(dtype, (float)(p.variable[0][i] + b->above));
    double *results = malloc((size_t)p.results * sizeof *results), statistics[2 * 70], running[2 * 70];
    float before[2 * 70];
    p.forward(&p, results);
    tess_rng_normal((tess_rng_key){3, 3, 3}, 0, 2 * channels, before);
    for (int64_t ch = 0; ch < channels; ch++) {
        const double mean = mean_of(p.variable[0] + ch, count, channels, 0, 1),
                     variance = mean_of(p.variable[0] + ch, count, channels, mean, 2);
        statistics[ch] = mean;
        statistics[channels + ch] = 1 / sqrt(variance + 1e-5);
        running[ch] = 0.9 * (double)before[ch] + 0.1 * mean;
        running[channels + ch] =
            0.9 * (double)before[channels + ch] + 0.1 * variance * (double)count / (double)(count - 1);
    }
    const tess_tensor t = values_tensor(&c, dtype, b->h, b->w, channels),
                      vector = vector_of(TESS_F32, 2 * channels);
    train_call call = {.op = {.kind = TESS_OP_BATCH_NORM_TRAIN,
                              .activation = b->activation,
                              .batch_norm = {1e-5, 0.1, false}}};
    set_input(&call, t, p.variable[0]);
    set_input(&call, vector, p.variable[1]);
    set_output(&call, t);
    set_output(&call, vector);
    if (b->running) {
        set_output(&call, vector);
        memcpy(call.out[2].f.data, before, (size_t)(2 * channels) * sizeof(float));
    }
    field want = random_field(&t, 32); /* what set_output wrote */
    for (int64_t i = 0; i < p.results; i++)
        put_value(dtype, want.data, (size_t)place_of(&t, i), (float)activated(b->activation, results[i]));
    if (train_update(device, &call, b->name)) {
        double largest = 0;
        const double most = difference(&t, &call.out[0].f, &want, &largest);
        CHECK_MSG(most <= bound * largest, "%s: |a-b| %.3g of %.3g", b->name, most, largest);
        check_vector(b->name, "means", call.out[1].f.data, statistics, channels);
        check_vector(b->name, "deviations", (float *)call.out[1].f.data + channels, statistics + channels,
                     channels);
        if (b->running)
            check_vector(b->name, "running", call.out[2].f.data, running, 2 * channels);
    }
    for (int i = 0; i < call.op.outputs; i++)
        free(call.out[i].f.data);
    free(call.in[0].f.data), free(call.in[1].f.data), free(want.data), free(results);
    point_clear(&p);
}

static inline void check_batch_norms(tess_device *device, tess_dtype dtype, double bound)
{
    for (size_t i = 0; i < sizeof batch_cases / sizeof batch_cases[0]; i++)
        check_batch_norm(device, &batch_cases[i], dtype, bound);
}

/* Images of different levels; with and without the channel of the level. */
static inline void check_noise(tess_device *device, bool level, int gap, double bound)
{
    const double images[3][4] = {{1, 0.1, 5, 7}, {0.5, 0, 6, 0}, {2, 0.25, 4000000000.0, 12}};
    const int64_t n = 3, h = 5, w = 27, c = 3, wide = c + level, image = h * w * c;
    train_call call = {.op = {.kind = TESS_OP_NOISE, .random = {77, 0}}};
    double *values = normal_values(n * image, 5, TESS_F32);
    const tess_tensor in = strided(TESS_F32, n, h, w, c, gap), out = strided(TESS_F32, n, h, w, wide, gap);
    set_input(&call, in, values);
    set_memory(&call, TESS_F64, n * 4, images);
    call.op.in[1] = tess_tensor_2d(TESS_F64, n, 1, 1, 4);
    set_output(&call, out);
    field want = random_field(&out, 32); /* what set_output wrote */
    float normal[5 * 27 * 3];
    for (int64_t k = 0; k < n; k++) {
        tess_rng_normal((tess_rng_key){77, (uint32_t)images[k][2], (uint32_t)images[k][3]}, 0, image, normal);
        for (int64_t i = 0; i < h * w * wide; i++) {
            const int64_t from = i / wide * c + i % wide;
            const double value =
                i % wide == c ? images[k][1]
                              : images[k][0] * values[k * image + from] + images[k][1] * (double)normal[from];
            put_value(TESS_F32, want.data, (size_t)place_of(&out, k * h * w * wide + i), (float)value);
        }
    }
    if (train_update(device, &call, "noise")) {
        double largest = 0;
        const double most = difference(&out, &call.out[0].f, &want, &largest);
        CHECK_MSG(most <= bound * largest, "noise: |a-b| %.3g of %.3g", most, largest);
    }
    free(call.in[0].f.data), free(call.in[1].f.data), free(call.out[0].f.data), free(want.data), free(values);
}

static inline void check_noises(tess_device *device, double bound)
{
    for (int i = 0; i < 4; i++)
        check_noise(device, i % 2 > 0, i / 2 * 2, bound);
}

#endif
