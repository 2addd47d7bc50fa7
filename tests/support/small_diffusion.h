/* small_diffusion.h: a small diffusion network with random weights on any device, and the same in fp64, by plain loops.
 *
 *   table = linear(silu(linear(silu(linear(level)))));  h = conv(image)
 *   e = conv(silu(norm(conv(silu(norm(h) * (1 + scale) + shift)) + h))) */
#ifndef TESS_TESTS_SMALL_DIFFUSION_H
#define TESS_TESTS_SMALL_DIFFUSION_H

#include "base/checked.h"
#include "base/mem.h"
#include "base/rng.h"
#include "check.h"
#include "model/diffusion.h"
#include "net/blocks.h"
#include "net/plan.h"

enum {
    SMALL_WIDTH = 8,
    SMALL_GROUPS = 4,
    SMALL_LEVELS = 8,
    SMALL_HIDDEN = 16,
    SMALL_TABLE = 2 * SMALL_WIDTH
};

static inline void *small_room(size_t size)
{
    void *data = calloc(1, size);
    if (!data)
        abort();
    return data;
}

typedef struct small_diffusion {
    tess_device *device;
    tess_diffusion_net net;
    tess_weights *weights;
    tess_bound *embedding, *step;
    tess_block embedding_weights, step_weights;
} small_diffusion;

static inline void small_draw(tess_weights *w, const char *layer, int rank, const int64_t *dims,
                              float deviation)
{
    char name[64];
    tess_error error = {{0}};
    const bool norm = rank == 1;
    snprintf(name, sizeof name, "%s.weight", layer);
    tess_weight_draw draw = {norm ? 1 : 0, deviation, false};
    CHECK_MSG(tess_weights_draw(w, name, rank, dims, draw, &error) == TESS_OK, "%s", error.text);
    snprintf(name, sizeof name, "%s.bias", layer);
    draw = (tess_weight_draw){0, deviation > 0 ? 0.1f : 0, false};
    CHECK_MSG(tess_weights_draw(w, name, 1, dims, draw, &error) == TESS_OK, "%s", error.text);
}

/* `tail`: the deviation of the last weights; 0: the network predicts no noise. */
static inline tess_weights *small_weights(int64_t channels, float tail)
{
    tess_weights *w = NULL;
    tess_error error = {{0}};
    CHECK(tess_weights_synthetic("random:small", 5, &w, &error) == TESS_OK);
    small_draw(w, "emb0", 4, (int64_t[]){SMALL_HIDDEN, SMALL_LEVELS, 1, 1}, 0.5f);
    small_draw(w, "emb1", 4, (int64_t[]){SMALL_HIDDEN, SMALL_HIDDEN, 1, 1}, 0.3f);
    small_draw(w, "emb2", 4, (int64_t[]){SMALL_TABLE, SMALL_HIDDEN, 1, 1}, 0.3f);
    small_draw(w, "head", 4, (int64_t[]){SMALL_WIDTH, channels, 3, 3}, 0.3f);
    small_draw(w, "norm1", 1, (int64_t[]){SMALL_WIDTH}, 0.1f);
    small_draw(w, "body", 4, (int64_t[]){SMALL_WIDTH, SMALL_WIDTH, 3, 3}, 0.12f);
    small_draw(w, "norm2", 1, (int64_t[]){SMALL_WIDTH}, 0.1f);
    small_draw(w, "tail", 4, (int64_t[]){1, SMALL_WIDTH, 3, 3}, tail);
    CHECK(tess_weights_drawn(w, &error) == TESS_OK);
    return w;
}

static inline tess_value small_conv(tess_net *net, tess_value in, const char *name, int64_t channels,
                                    int side)
{
    return tess_net_conv(
        net, in, (tess_conv_settings){name, channels, TESS_WINDOW_2D(side, 1, side / 2), .bias = true});
}

static inline void small_nets(tess_diffusion_net *net, int64_t channels)
{
    tess_error error = {{0}};
    *net = (tess_diffusion_net){.embedding = tess_net_create(),
                                .step = tess_net_create(),
                                .channels = channels,
                                .levels = SMALL_LEVELS,
                                .table = SMALL_TABLE,
                                .grid = 1};
    tess_value v = tess_net_input_vector(net->embedding, SMALL_LEVELS);
    v = tess_net_activate(net->embedding, small_conv(net->embedding, v, "emb0", SMALL_HIDDEN, 1), TESS_SILU);
    v = tess_net_activate(net->embedding, small_conv(net->embedding, v, "emb1", SMALL_HIDDEN, 1), TESS_SILU);
    v = small_conv(net->embedding, v, "emb2", SMALL_TABLE, 1);
    CHECK_MSG(tess_net_finish(net->embedding, v, &error) == TESS_OK, "%s", error.text);
    const tess_value image = tess_net_input(net->step, channels),
                     vector = tess_net_input_shared(net->step, SMALL_TABLE),
                     h = small_conv(net->step, image, "head", SMALL_WIDTH, 3);
    tess_net_keep(net->step, image);
    v = tess_net_group_norm(net->step, h,
                            (tess_group_norm_settings){"norm1", SMALL_GROUPS, .scale_shift = &vector});
    v = small_conv(net->step, tess_net_activate(net->step, v, TESS_SILU), "body", SMALL_WIDTH, 3);
    v = tess_net_group_norm(net->step, tess_net_add(net->step, v, h),
                            (tess_group_norm_settings){"norm2", SMALL_GROUPS});
    v = small_conv(net->step, tess_net_activate(net->step, v, TESS_SILU), "tail", 1, 3);
    CHECK_MSG(tess_net_finish(net->step, v, &error) == TESS_OK, "%s", error.text);
}

static inline void small_bind(small_diffusion *s, const tess_net *net, tess_dtype dtype, tess_bound **bound,
                              tess_block *block)
{
    tess_error error = {{0}};
    CHECK_MSG(tess_bound_create(net, s->device, dtype, bound, &error) == TESS_OK, "%s", error.text);
    CHECK(s->device->memory->alloc(s->device, block, TESS_MEM_WEIGHTS, tess_bound_weight_bytes(*bound),
                                   &error) == TESS_OK);
    CHECK_MSG(tess_bound_load(*bound, s->weights, block->data, &error) == TESS_OK, "%s", error.text);
}

static inline small_diffusion small_open(tess_device *device, tess_dtype dtype, int64_t channels, float tail)
{
    small_diffusion s = {.device = device, .weights = small_weights(channels, tail)};
    small_nets(&s.net, channels);
    small_bind(&s, s.net.embedding, TESS_F32, &s.embedding, &s.embedding_weights);
    small_bind(&s, s.net.step, dtype, &s.step, &s.step_weights);
    return s;
}

/* A network of src/model from its file; heads of 4 channels, as the dumps of tests/data have. */
static inline small_diffusion small_from_file(tess_device *device, tess_dtype dtype, const char *path)
{
    small_diffusion s = {.device = device};
    tess_error error = {{0}};
    CHECK_MSG(tess_weights_open(path, &s.weights, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_weights_set_metadata(s.weights, "num_head_channels", "4", &error) == TESS_OK);
    CHECK_MSG(tess_diffusion_recognise(s.weights, &s.net, &error) == TESS_OK, "%s", error.text);
    small_bind(&s, s.net.embedding, TESS_F32, &s.embedding, &s.embedding_weights);
    small_bind(&s, s.net.step, dtype, &s.step, &s.step_weights);
    return s;
}

static inline void small_close(small_diffusion *s)
{
    tess_bound_destroy(s->embedding);
    tess_bound_destroy(s->step);
    s->device->memory->free(s->device, &s->embedding_weights);
    s->device->memory->free(s->device, &s->step_weights);
    tess_diffusion_clear(&s->net);
    tess_weights_close(s->weights);
}

/* All of a tensor's values, to be freed. */
static inline float *small_values(tess_weights *weights, const char *layer, const char *part)
{
    char name[64];
    tess_error error = {{0}};
    snprintf(name, sizeof name, "%s.%s", layer, part);
    const tess_weight *w = tess_weights_find(weights, name);
    float *values = small_room((size_t)w->elements * sizeof *values);
    CHECK(tess_weights_read(weights, w, 0, w->elements, values, &error) == TESS_OK);
    return values;
}

/* A convolution of h x w x in values; side 1 or 3. */
static inline double *plain_conv(tess_weights *weights, const char *layer, const double *x, int64_t h,
                                 int64_t w, int64_t in, int64_t out, int side)
{
    float *kernel = small_values(weights, layer, "weight"), *bias = small_values(weights, layer, "bias");
    double *result = small_room((size_t)(h * w * out) * sizeof *result);
    for (int64_t i = 0; i < h * w * out; i++) {
        const int64_t o = i % out, px = i / out % w, py = i / out / w;
        double sum = bias[o];
        for (int64_t c = 0; c < in; c++)
            for (int ky = 0; ky < side; ky++)
                for (int kx = 0; kx < side; kx++) {
                    const int64_t y = py + ky - side / 2, at = px + kx - side / 2;
                    if (y >= 0 && y < h && at >= 0 && at < w)
                        sum +=
                            (double)kernel[((o * in + c) * side + ky) * side + kx] * x[(y * w + at) * in + c];
                }
        result[i] = sum;
    }
    free(kernel), free(bias);
    return result;
}

static inline void plain_silu(double *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        x[i] = x[i] / (1 + exp(-x[i]));
}

/* Group norm of SMALL_WIDTH channels, with scales and shifts if `table` is not NULL. */
static inline void plain_norm(tess_weights *weights, const char *layer, double *x, int64_t pixels,
                              const double *table)
{
    enum { EACH = SMALL_WIDTH / SMALL_GROUPS };
    float *weight = small_values(weights, layer, "weight"), *bias = small_values(weights, layer, "bias");
    for (int g = 0; g < SMALL_GROUPS; g++) {
        double mean = 0, square = 0;
        for (int64_t i = 0; i < pixels * EACH; i++)
            mean += x[i / EACH * SMALL_WIDTH + g * EACH + i % EACH] / (double)(pixels * EACH);
        for (int64_t i = 0; i < pixels * EACH; i++)
            square +=
                pow(x[i / EACH * SMALL_WIDTH + g * EACH + i % EACH] - mean, 2) / (double)(pixels * EACH);
        for (int64_t i = 0; i < pixels * EACH; i++) {
            const int64_t c = g * EACH + i % EACH;
            double *at = &x[i / EACH * SMALL_WIDTH + c];
            *at = (*at - mean) / sqrt(square + 1e-5) * weight[c] + bias[c];
            if (table)
                *at = *at * (1 + table[c]) + table[SMALL_WIDTH + c];
        }
    }
    free(weight), free(bias);
}

/* The predicted noise of one window (h, w, channels) at a noise level; to be freed. */
static inline double *plain_noise(tess_weights *weights, const double *image, int64_t h, int64_t w,
                                  int64_t channels, double gamma)
{
    double level[SMALL_LEVELS];
    for (int i = 0; i < SMALL_LEVELS / 2; i++) {
        const double f = exp(-log(10000) * i / (SMALL_LEVELS / 2));
        level[i] = cos(gamma * f);
        level[SMALL_LEVELS / 2 + i] = sin(gamma * f);
    }
    double *a = plain_conv(weights, "emb0", level, 1, 1, SMALL_LEVELS, SMALL_HIDDEN, 1);
    plain_silu(a, SMALL_HIDDEN);
    double *b = plain_conv(weights, "emb1", a, 1, 1, SMALL_HIDDEN, SMALL_HIDDEN, 1);
    plain_silu(b, SMALL_HIDDEN);
    double *table = plain_conv(weights, "emb2", b, 1, 1, SMALL_HIDDEN, SMALL_TABLE, 1);
    double *head = plain_conv(weights, "head", image, h, w, channels, SMALL_WIDTH, 3);
    double *x = small_room((size_t)(h * w * SMALL_WIDTH) * sizeof *x);
    memcpy(x, head, (size_t)(h * w * SMALL_WIDTH) * sizeof *x);
    plain_norm(weights, "norm1", x, h * w, table);
    plain_silu(x, h * w * SMALL_WIDTH);
    double *body = plain_conv(weights, "body", x, h, w, SMALL_WIDTH, SMALL_WIDTH, 3);
    for (int64_t i = 0; i < h * w * SMALL_WIDTH; i++)
        body[i] += head[i];
    plain_norm(weights, "norm2", body, h * w, NULL);
    plain_silu(body, h * w * SMALL_WIDTH);
    double *e = plain_conv(weights, "tail", body, h, w, SMALL_WIDTH, 1, 3);
    free(a), free(b), free(table), free(head), free(x), free(body);
    return e;
}

#endif
