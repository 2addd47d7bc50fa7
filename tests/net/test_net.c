/* test_net.c: fusion of hand-built networks; random networks compared with a plain evaluation of their layers in
 * fp64; and the reach: a window with the halo of tess_bound_reach gives the bits of the whole image, one alignment
 * step less does not. */
#define _POSIX_C_SOURCE 200809L
#include "net/net.h"

#include <unistd.h>

#include "counter.h"
#include "support.h"
#include "tile/grid.h"

/* A network as it is drawn, before anything is fused, so that it can be evaluated layer by layer. */
typedef struct node {
    tess_op_kind kind; /* TESS_OP_KINDS: an input */
    int a, b;
    int64_t channels;
    int down, kernel, stride;
    bool bias;
    char name[16];
    double *result;
} node;

enum { MOST_NODES = 96 };

typedef struct sketch {
    tess_net *net;
    tensor_list list;
    node nodes[MOST_NODES]; /* one for each value: a node's number is its value's */
    int count;
} sketch;

static int drawn(sketch *s, node n, tess_value value)
{
    CHECK_MSG(value == s->count, "value %d, expected %d", value, s->count);
    if (s->count == MOST_NODES)
        abort();
    s->nodes[s->count] = n;
    return s->count++;
}

static int draw_input(sketch *s, int64_t channels)
{
    return drawn(s, (node){.kind = TESS_OP_KINDS, .channels = channels}, tess_net_input(s->net, channels));
}

static int draw_conv(sketch *s, int a, int64_t channels, int kernel, int stride, bool bias)
{
    node n = {TESS_OP_CONV, a,      -1,   channels, s->nodes[a].down + (stride == 2),
              kernel,       stride, bias, "",       NULL};
    snprintf(n.name, sizeof n.name, "conv%d", s->count);
    add_conv(&s->list, n.name, channels, s->nodes[a].channels, kernel, bias);
    tess_conv_settings settings = {n.name, channels,
                                   TESS_WINDOW_2D(kernel, stride, stride == 1 ? kernel / 2 : 0), bias};
    return drawn(s, n, tess_net_conv(s->net, a, settings));
}

static int draw_up_conv(sketch *s, int a, int64_t channels)
{
    node n = {TESS_OP_CONV_TRANSPOSE, a, -1, channels, s->nodes[a].down - 1, 2, 2, false, "", NULL};
    snprintf(n.name, sizeof n.name, "up%d", s->count);
    add_conv(&s->list, n.name, s->nodes[a].channels, channels, 2, false);
    tess_conv_settings settings = {n.name, channels, TESS_WINDOW_2D(2, 2, 0), false};
    return drawn(s, n, tess_net_conv_transpose(s->net, a, settings));
}

static int draw_norm(sketch *s, int a)
{
    node n = {.kind = TESS_OP_BATCH_NORM, .a = a, .channels = s->nodes[a].channels, .down = s->nodes[a].down};
    snprintf(n.name, sizeof n.name, "norm%d", s->count);
    add_norm(&s->list, n.name, n.channels);
    return drawn(s, n, tess_net_batch_norm(s->net, a, n.name));
}

static int draw_plain(sketch *s, tess_op_kind kind, int a, int b)
{
    node n = {.kind = kind, .a = a, .b = b, .channels = s->nodes[a].channels, .down = s->nodes[a].down};
    switch (kind) {
    case TESS_OP_ACTIVATE:
        return drawn(s, n, tess_net_activate(s->net, a, TESS_RELU));
    case TESS_OP_ADD:
        return drawn(s, n, tess_net_add(s->net, a, b));
    case TESS_OP_MAX_POOL:
        n.down++;
        return drawn(s, n, tess_net_max_pool(s->net, a));
    case TESS_OP_UPSAMPLE:
        n.down--;
        return drawn(s, n, tess_net_upsample(s->net, a));
    default:
        n.channels += s->nodes[b].channels;
        return drawn(s, n, tess_net_concat(s->net, a, b));
    }
}

static int draw_relu(sketch *s, int a)
{
    return draw_plain(s, TESS_OP_ACTIVATE, a, -1);
}

static int draw_add(sketch *s, int a, int b)
{
    return draw_plain(s, TESS_OP_ADD, a, b);
}

static void sketch_clear(sketch *s)
{
    for (int i = 0; i < s->count; i++)
        free(s->nodes[i].result);
    drop(&s->list.header), drop(&s->list.values);
    tess_net_destroy(s->net);
}

/* A random step from x to a new x. `old` is an earlier x of the same shape, or x itself. */
static int random_step(sketch *s, dice *d, int x, int old)
{
    const int64_t c = s->nodes[x].channels;
    const bool bias = pick(d, 0, 1);
    int y;
    switch (pick(d, 0, 7)) {
    case 0:
        return draw_relu(s, draw_conv(s, x, c, 3, 1, bias));
    case 1:
        return draw_relu(s, draw_norm(s, draw_conv(s, x, c, 3, 1, bias)));
    case 2: /* a residual block */
        y = draw_relu(s, draw_conv(s, x, c, 3, 1, bias));
        return draw_add(s, draw_conv(s, y, c, 3, 1, bias), x);
    case 3:
        return draw_conv(s, x, c, pick(d, 0, 1) ? 1 : 5, 1, bias);
    case 4: /* two residuals, then a ReLU */
        y = draw_relu(s, draw_conv(s, x, c, 3, 1, bias));
        y = draw_add(s, old, draw_add(s, x, draw_conv(s, y, c, 3, 1, bias)));
        return draw_relu(s, y);
    case 5: /* an addition that no convolution can take: the ReLU is in between */
        return draw_add(s, draw_relu(s, draw_conv(s, x, c, 3, 1, bias)), old);
    case 6: /* x + conv(x): input and residual are one */
        return draw_add(s, draw_norm(s, draw_conv(s, x, c, 3, 1, bias)), x);
    default: /* side by side */
        y = draw_relu(s, draw_conv(s, x, pick(d, 1, 9), 3, 1, bias));
        y = draw_plain(s, TESS_OP_CONCAT, y, draw_conv(s, x, pick(d, 1, 9), 1, 1, bias));
        return draw_conv(s, y, c, 3, 1, bias);
    }
}

static int random_down(sketch *s, dice *d, int x, int64_t width)
{
    if (pick(d, 0, 1))
        return draw_plain(s, TESS_OP_MAX_POOL, x, -1);
    return draw_conv(s, x, width, 2, 2, false);
}

static int random_up(sketch *s, dice *d, int x, int skip, int64_t width)
{
    if (pick(d, 0, 1)) {
        int up = draw_up_conv(s, x, s->nodes[skip].channels);
        return draw_add(s, pick(d, 0, 1) ? draw_norm(s, up) : up, skip);
    }
    int y = draw_relu(s, draw_conv(s, draw_plain(s, TESS_OP_UPSAMPLE, x, -1), width, 3, 1, true));
    y = pick(d, 0, 1) ? draw_plain(s, TESS_OP_CONCAT, skip, y) : draw_plain(s, TESS_OP_CONCAT, y, skip);
    return draw_conv(s, y, width, 3, 1, false);
}

static void random_sketch(sketch *s, dice *d, int64_t width, int scales, int steps)
{
    memset(s, 0, sizeof *s);
    s->net = tess_net_create();
    const int64_t channels = pick(d, 1, 4);
    int image = draw_input(s, channels), skips[4], x = draw_conv(s, image, width, 3, 1, false);
    for (int scale = 0; scale < scales; scale++) {
        for (int i = 0, old = x, next; i < steps; i++, old = x, x = next)
            next = random_step(s, d, x, old);
        skips[scale] = x;
        x = random_down(s, d, x, width);
    }
    for (int i = 0, old = x, next; i < steps; i++, old = x, x = next)
        next = random_step(s, d, x, old);
    for (int scale = scales - 1; scale >= 0; scale--)
        x = random_step(s, d, random_up(s, d, x, skips[scale], width), skips[scale]);
    x = draw_conv(s, x, channels, 3, 1, true);
    tess_error error = {{0}};
    CHECK(tess_net_finish(s->net, pick(d, 0, 1) ? draw_add(s, x, image) : x, &error) == TESS_OK);
}

/* Plain evaluation. `values` reads a tensor of the file whole. */
static float *values_of(tess_weights *weights, const char *layer, const char *part)
{
    char name[64];
    tess_error error = {{0}};
    snprintf(name, sizeof name, "%s.%s", layer, part);
    const tess_weight *weight = tess_weights_find(weights, name);
    if (!weight)
        return NULL;
    float *values = room((size_t)weight->elements * sizeof *values);
    CHECK(tess_weights_read(weights, weight, 0, weight->elements, values, &error) == TESS_OK);
    return values;
}

static void evaluate_conv(const node *n, const node *in, int64_t h, int64_t w, tess_weights *weights)
{
    float *kernel = values_of(weights, n->name, "weight"), *bias = values_of(weights, n->name, "bias");
    const int64_t ih = in->down < n->down ? 2 * h : h, iw = in->down < n->down ? 2 * w : w;
    const int pad = n->stride == 1 ? n->kernel / 2 : 0;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int64_t o = 0; o < n->channels; o++) {
                double sum = bias ? bias[o] : 0;
                for (int ky = 0; ky < n->kernel; ky++)
                    for (int kx = 0; kx < n->kernel; kx++) {
                        int64_t iy = y * n->stride + ky - pad, ix = x * n->stride + kx - pad;
                        if (iy < 0 || iy >= ih || ix < 0 || ix >= iw)
                            continue;
                        const double *from = in->result + (iy * iw + ix) * in->channels;
                        for (int64_t i = 0; i < in->channels; i++)
                            sum +=
                                from[i] * kernel[((o * in->channels + i) * n->kernel + ky) * n->kernel + kx];
                    }
                n->result[(y * w + x) * n->channels + o] = sum;
            }
    free(kernel), free(bias);
}

static void evaluate_up_conv(const node *n, const node *in, int64_t h, int64_t w, tess_weights *weights)
{
    float *kernel = values_of(weights, n->name, "weight");
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int64_t o = 0; o < n->channels; o++) {
                double sum = 0;
                for (int64_t i = 0; i < in->channels; i++)
                    sum += in->result[(y / 2 * (w / 2) + x / 2) * in->channels + i] *
                           kernel[((i * n->channels + o) * 2 + y % 2) * 2 + x % 2];
                n->result[(y * w + x) * n->channels + o] = sum;
            }
    free(kernel);
}

static void evaluate_norm(const node *n, const node *in, int64_t pixels, tess_weights *weights)
{
    float *gain = values_of(weights, n->name, "weight"), *beta = values_of(weights, n->name, "bias"),
          *mean = values_of(weights, n->name, "running_mean"),
          *variance = values_of(weights, n->name, "running_var");
    for (int64_t i = 0; i < pixels * n->channels; i++) {
        int64_t c = i % n->channels;
        n->result[i] = (in->result[i] - mean[c]) / sqrt(variance[c] + 1e-5) * gain[c] + beta[c];
    }
    free(gain), free(beta), free(mean), free(variance);
}

static double pooled(const node *in, int64_t y, int64_t x, int64_t w, int64_t c)
{
    double most = -INFINITY;
    for (int i = 0; i < 4; i++)
        most = fmax(most, in->result[((2 * y + i / 2) * 2 * w + 2 * x + i % 2) * in->channels + c]);
    return most;
}

static double pointwise(const sketch *s, const node *n, int64_t y, int64_t x, int64_t w, int64_t c)
{
    const node *a = &s->nodes[n->a], *b = n->b >= 0 ? &s->nodes[n->b] : NULL;
    const int64_t pixel = y * w + x;
    switch (n->kind) {
    case TESS_OP_ACTIVATE:
        return fmax(a->result[pixel * a->channels + c], 0);
    case TESS_OP_ADD:
        return a->result[pixel * a->channels + c] + b->result[pixel * b->channels + c];
    case TESS_OP_MAX_POOL:
        return pooled(a, y, x, w, c);
    case TESS_OP_UPSAMPLE:
        return a->result[(y / 2 * (w / 2) + x / 2) * a->channels + c];
    default:
        return c < a->channels ? a->result[pixel * a->channels + c]
                               : b->result[pixel * b->channels + c - a->channels];
    }
}

static const double *evaluate(sketch *s, tess_weights *weights, const float *image, int64_t height,
                              int64_t width)
{
    for (int i = 0; i < s->count; i++) {
        node *n = &s->nodes[i];
        const int64_t h = height >> n->down, w = width >> n->down;
        n->result = room((size_t)(h * w * n->channels) * sizeof *n->result);
        if (n->kind == TESS_OP_KINDS)
            for (int64_t k = 0; k < h * w * n->channels; k++)
                n->result[k] = image[k];
        else if (n->kind == TESS_OP_CONV)
            evaluate_conv(n, &s->nodes[n->a], h, w, weights);
        else if (n->kind == TESS_OP_CONV_TRANSPOSE)
            evaluate_up_conv(n, &s->nodes[n->a], h, w, weights);
        else if (n->kind == TESS_OP_BATCH_NORM)
            evaluate_norm(n, &s->nodes[n->a], h * w, weights);
        else
            for (int64_t k = 0; k < h * w * n->channels; k++)
                n->result[k] = pointwise(s, n, k / n->channels / w, k / n->channels % w, w, k % n->channels);
    }
    return s->nodes[tess_net_output_value(s->net, 0)].result;
}

static char path[512];

static tess_weights *save_and_open(sketch *s)
{
    tess_weights *weights = NULL;
    tess_error error = {{0}};
    save_tensors(&s->list, path);
    CHECK_MSG(tess_weights_open(path, &weights, &error) == TESS_OK, "%s", error.text);
    return weights;
}

static float *random_image(int64_t count, uint32_t item)
{
    float *image = room((size_t)count * sizeof *image);
    tess_rng_normal((tess_rng_key){31, item, 0}, 0, count, image);
    return image;
}

static void test_against_plain(tess_device *device, uint32_t seeds)
{
    double worst = 0;
    for (uint32_t seed = 0; seed < seeds; seed++) {
        dice d = {seed};
        sketch s;
        random_sketch(&s, &d, seed % 3 ? pick(&d, 3, 9) : 32, (int)pick(&d, 0, 2), (int)pick(&d, 0, 2));
        tess_weights *weights = save_and_open(&s);
        const int64_t grid = tess_net_grid(s.net, TESS_HEIGHT), h = grid * pick(&d, 1, 12 / grid),
                      w = grid * pick(&d, 1, 12 / grid);
        const int64_t channels = s.nodes[0].channels, count = h * w * channels;
        float *image = random_image(2 * count, seed), *result = room((size_t)(2 * count) * sizeof *result);
        ready r;
        tess_error error = {{0}};
        CHECK_MSG(ready_make(s.net, device, TESS_F32, weights, (tess_plan_shape){2, h, w}, &r, &error) ==
                      TESS_OK,
                  "seed %u: %s", seed, error.text);
        CHECK(tess_net_plan_arena_bytes(r.plan) >= tess_net_plan_lower_bound(r.plan));
        ready_run(&r, image, result);
        const double *expected =
            evaluate(&s, weights, image + count, h, w); /* the second image of the batch */
        double most = 0, largest = 0;
        for (int64_t i = 0; i < count; i++) {
            double off = fabs(result[count + i] - expected[i]);
            most = off <= most ? most : off;
            largest = fmax(largest, fabs(expected[i]));
        }
        CHECK_MSG(most <= 2e-5 * largest, "seed %u, %lldx%lld: off by %g of %g", seed, (long long)h,
                  (long long)w, most, largest);
        worst = fmax(worst, most / largest);
        ready_clear(&r);
        tess_weights_close(weights);
        sketch_clear(&s);
        free(image), free(result);
    }
    printf("random networks are off by %.2g of their largest value\n", worst);
}

/* Rows and columns [from, to) of a square image of `side`. */
static float *window_of(const float *image, int64_t side, int64_t channels, int64_t from, int64_t to)
{
    const int64_t row = (to - from) * channels;
    float *window = room((size_t)((to - from) * row) * sizeof *window);
    for (int64_t y = from; y < to; y++)
        memcpy(window + (y - from) * row, image + (y * side + from) * channels, (size_t)row * sizeof *window);
    return window;
}

static float *run_square(const sketch *s, tess_device *device, tess_dtype dtype, tess_weights *weights,
                         const float *image, int64_t side)
{
    ready r;
    tess_error error = {{0}};
    float *result = room((size_t)(side * side * s->nodes[0].channels) * sizeof *result);
    CHECK_MSG(ready_make(s->net, device, dtype, weights, (tess_plan_shape){1, side, side}, &r, &error) ==
                  TESS_OK,
              "%s", error.text);
    ready_run(&r, image, result);
    ready_clear(&r);
    return result;
}

/* Are the results in [core, core + step) squared the same bits, computed from the window [from, to)? */
static bool same_bits(const sketch *s, tess_device *device, tess_dtype dtype, tess_weights *weights,
                      const float *image, const float *whole, int64_t side, const tess_span *span)
{
    const int64_t channels = s->nodes[0].channels, within = span->window_to - span->window_from;
    float *window = window_of(image, side, channels, span->window_from, span->window_to);
    float *result = run_square(s, device, dtype, weights, window, within);
    bool same = true;
    for (int64_t y = span->from; y < span->to; y++) {
        const float *a = whole + (y * side + span->from) * channels;
        const float *b =
            result + ((y - span->window_from) * within + span->from - span->window_from) * channels;
        same &= memcmp(a, b, (size_t)((span->to - span->from) * channels) * sizeof *a) == 0;
    }
    free(window), free(result);
    return same;
}

static sketch blank(void)
{
    return (sketch){.net = tess_net_create()};
}

static void finish(sketch *s, int out)
{
    tess_error error = {{0}};
    CHECK_MSG(tess_net_finish(s->net, out, &error) == TESS_OK && tess_net_output_value(s->net, 0) == out,
              "%s", error.text);
}

/* Windows with the reach repeat the whole, in the middle and in both corners; `differs` says whether one step less is
 * too little. */
static void check_reach(sketch *s, tess_device *device, tess_dtype dtype, const char *what, bool *differs)
{
    tess_weights *weights = save_and_open(s);
    tess_bound *bound = NULL;
    tess_error error = {{0}};
    CHECK(tess_bound_create(s->net, device, dtype, &bound, &error) == TESS_OK);
    const int64_t step = tess_bound_alignment(bound), reach = tess_bound_reach(bound);
    tess_bound_destroy(bound);
    const int64_t halo = tess_round_up(reach, step), side = 2 * halo + 3 * step, core = halo + step;
    CHECK_MSG(step % tess_net_grid(s->net, TESS_HEIGHT) == 0 && reach >= 1 && side < 300, "%s: reach %lld",
              what, (long long)reach);
    float *image = random_image(side * side * s->nodes[0].channels, 50);
    float *whole = run_square(s, device, dtype, weights, image, side);
    const tess_span exact = {core, core + step, core - halo, core + step + halo};
    const tess_span less = {core, core + step, core - halo + step, core + halo};
    const tess_span corner = {0, step, 0, step + halo};
    const tess_span end = {side - step, side, side - step - halo, side};
    CHECK_MSG(same_bits(s, device, dtype, weights, image, whole, side, &exact), "%s: reach %lld, step %lld",
              what, (long long)reach, (long long)step);
    CHECK_MSG(same_bits(s, device, dtype, weights, image, whole, side, &corner), "%s", what);
    CHECK_MSG(same_bits(s, device, dtype, weights, image, whole, side, &end), "%s", what);
    *differs = !same_bits(s, device, dtype, weights, image, whole, side, &less);
    free(image), free(whole);
    tess_weights_close(weights);
    sketch_clear(s);
}

static void test_reach(tess_device *device, tess_dtype dtype, int seeds)
{
    int differ = 0;
    bool differs;
    char what[64];
    for (int seed = 0; seed < seeds; seed++) {
        dice d = {700 + (uint64_t)seed};
        sketch s;
        snprintf(what, sizeof what, "%s, seed %d", tess_dtype_name(dtype), seed);
        random_sketch(&s, &d, seed % 2 ? 32 : 5, (int)pick(&d, 0, 2), (int)pick(&d, 0, 1));
        check_reach(&s, device, dtype, what, &differs);
        differ += differs;
    }
    printf("%s: %d networks repeat with their reach; %d of them differ with a step less\n",
           tess_dtype_name(dtype), seeds, differ);
    CHECK(differ >= seeds / 2);
}

/* Chains of wide convolutions, which Winograd takes: three of them look further than the mathematics does, by
 * more than a step of the alignment. */
static void test_chain_reach(tess_device *device, tess_dtype dtype)
{
    for (int count = 1; count <= 6; count++) {
        sketch s = blank();
        char what[64];
        bool differs;
        snprintf(what, sizeof what, "%s, a chain of %d", tess_dtype_name(dtype), count);
        int x = draw_conv(&s, draw_input(&s, 1), 64, 1, 1, true);
        for (int i = 0; i < count; i++)
            x = draw_conv(&s, x, 64, 3, 1, i % 2);
        finish(&s, draw_conv(&s, x, 1, 1, 1, false));
        check_reach(&s, device, dtype, what, &differs);
        CHECK_MSG(differs, "%s", what);
    }
}

static const tess_layer *layer_of(const tess_net *net, tess_value value)
{
    return tess_net_layer(net, tess_net_value(net, value)->producer);
}

static int layers_left(const tess_net *net)
{
    int left = 0;
    for (int i = 0; i < tess_net_layer_count(net); i++)
        left += !tess_net_layer(net, i)->dropped;
    return left;
}

/* The ends of a convolution go into it. */
static void test_fused(tess_device *device)
{
    sketch s = blank();
    int x = draw_input(&s, 3), first = draw_conv(&s, x, 5, 3, 1, false);
    int y = draw_relu(&s, draw_norm(&s, first));
    finish(&s, y);
    CHECK(layers_left(s.net) == 1);
    const tess_layer *conv = layer_of(s.net, y);
    CHECK(conv->kind == TESS_OP_CONV && conv->activation == TESS_RELU &&
          strcmp(conv->norm, s.nodes[2].name) == 0 && conv->out[0] == y);
    CHECK(strcmp(conv->name, s.nodes[1].name) == 0 && conv->in[0] == x && conv->inputs == 1);
    tess_bound *bound = NULL;
    tess_net_plan *plan = NULL;
    tess_error error = {{0}};
    CHECK(tess_bound_create(s.net, device, TESS_F32, &bound, &error) == TESS_OK);
    CHECK(tess_net_plan_create(bound, (tess_plan_shape){1, 6, 8}, &plan, &error) == TESS_OK);
    CHECK(tess_net_plan_op_count(plan) == 1);
    const tess_op *op = tess_net_plan_op(plan, 0);
    CHECK(op->kind == TESS_OP_CONV && op->bias && tess_op_relu(op) && op->in[0].c == 3 && op->out[0].c == 5 &&
          op->out[0].h == 6 && op->out[0].w == 8 && op->pad_before[TESS_WIDTH] == 1 &&
          op->pad_after[TESS_HEIGHT] == 1);
    tess_net_plan_destroy(plan);
    tess_bound_destroy(bound);
    sketch_clear(&s);

    s = blank(); /* conv, relu, conv + both of two earlier values */
    x = draw_conv(&s, draw_input(&s, 3), 5, 3, 1, false);
    y = draw_relu(&s, draw_conv(&s, x, 5, 3, 1, true));
    int z = draw_add(&s, x, draw_add(&s, draw_conv(&s, y, 5, 3, 1, true), y));
    finish(&s, z);
    CHECK(layers_left(s.net) == 3);
    conv = layer_of(s.net, z);
    CHECK(conv->inputs == 3 && conv->in[1] == y && conv->in[2] == x && conv->activation == TESS_LINEAR &&
          conv->in[0] == y);
    sketch_clear(&s);
}

/* What must not be fused: the value before the end is read by somebody else, or the end has a ReLU before it.
 */
static void test_not_fused(void)
{
    sketch s = blank();
    int x = draw_conv(&s, draw_input(&s, 3), 5, 3, 1, false);
    int y = draw_conv(&s, x, 5, 3, 1, false), z = draw_add(&s, y, x);
    finish(&s, draw_conv(&s, draw_add(&s, z, y), 3, 3, 1, false)); /* y is read twice */
    CHECK(layer_of(s.net, y)->inputs == 1 && layer_of(s.net, z)->kind == TESS_OP_ADD &&
          layers_left(s.net) == 5);
    sketch_clear(&s);

    s = blank();
    x = draw_conv(&s, draw_input(&s, 3), 5, 3, 1, false);
    y = draw_relu(&s, draw_conv(&s, x, 5, 3, 1, false));
    z = draw_add(&s, y, x);
    finish(&s, z); /* ReLU first, then the sum */
    CHECK(layer_of(s.net, y)->activation == TESS_RELU && layer_of(s.net, y)->inputs == 1 &&
          layers_left(s.net) == 3);
    sketch_clear(&s);

    s = blank();
    x = draw_conv(&s, draw_input(&s, 3), 5, 3, 1, false);
    y = draw_conv(&s, x, 5, 3, 1, false);
    for (int i = 0; i < 3; i++) /* two residuals is what an op has */
        y = draw_add(&s, y, x);
    finish(&s, y);
    CHECK(layers_left(s.net) == 3 && layer_of(s.net, y)->kind == TESS_OP_ADD);
    sketch_clear(&s);
}

static void test_concat(tess_device *device)
{
    sketch s = blank();
    int x = draw_input(&s, 3), a = draw_relu(&s, draw_conv(&s, x, 8, 3, 1, false)),
        b = draw_conv(&s, x, 5, 1, 1, true);
    int both = draw_plain(&s, TESS_OP_CONCAT, a, b), out = draw_conv(&s, both, 3, 3, 1, false);
    finish(&s, out);
    const tess_value_info *info_a = tess_net_value(s.net, a), *info_b = tess_net_value(s.net, b);
    CHECK(info_a->root == both && info_a->offset == 0 && info_b->root == both && info_b->offset == 8);
    CHECK(tess_net_value(s.net, both)->channels == 13 && layers_left(s.net) == 3);
    tess_bound *bound = NULL;
    tess_net_plan *plan = NULL;
    tess_error error = {{0}};
    CHECK(tess_bound_create(s.net, device, TESS_F32, &bound, &error) == TESS_OK);
    CHECK(tess_net_plan_create(bound, (tess_plan_shape){2, 4, 6}, &plan, &error) == TESS_OK);
    CHECK(tess_net_plan_op_count(plan) == 3);
    const tess_op *left = tess_net_plan_op(plan, 0), *right = tess_net_plan_op(plan, 1),
                  *last = tess_net_plan_op(plan, 2);
    CHECK(left->out[0].c == 8 && left->out[0].stride_w == 13 && left->out[0].stride_h == 6 * 13 &&
          left->out[0].stride_n == 4 * 6 * 13);
    CHECK(right->out[0].c == 5 && right->out[0].stride_w == 13 && last->in[0].c == 13 &&
          last->in[0].stride_w == 13);
    tess_net_plan_destroy(plan);
    tess_bound_destroy(bound);
    sketch_clear(&s);
}

static size_t image_bytes(int64_t h, int64_t w, int64_t channels)
{
    return tess_align_size((size_t)(h * w * channels) * sizeof(float), 256);
}

/* A chain of residual blocks needs two tensors, however long it is: the second convolution writes over the
 * residual. */
static void test_in_place(tess_device *device)
{
    for (int blocks = 1; blocks <= 5; blocks++) {
        sketch s = blank();
        int x = draw_conv(&s, draw_input(&s, 3), 8, 3, 1, false);
        for (int i = 0; i < blocks; i++)
            x = draw_add(&s, draw_conv(&s, draw_relu(&s, draw_conv(&s, x, 8, 3, 1, false)), 8, 3, 1, false),
                         x);
        finish(&s, draw_conv(&s, x, 3, 3, 1, false));
        tess_bound *bound = NULL;
        tess_net_plan *plan = NULL;
        tess_error error = {{0}};
        CHECK(tess_bound_create(s.net, device, TESS_F32, &bound, &error) == TESS_OK);
        CHECK(tess_net_plan_create(bound, (tess_plan_shape){1, 20, 12}, &plan, &error) == TESS_OK);
        const size_t expected = 2 * image_bytes(20, 12, 8);
        CHECK_MSG(tess_net_plan_arena_bytes(plan) == expected && tess_net_plan_lower_bound(plan) == expected,
                  "%d blocks: %zu bytes, expected %zu", blocks, tess_net_plan_arena_bytes(plan), expected);
        tess_net_plan_destroy(plan);
        tess_bound_destroy(bound);
        sketch_clear(&s);
    }
}

/* Channels that no Winograd kernel takes: the reach is the radius, and any pixel may start a window. */
static void test_direct_reach(tess_device *device)
{
    for (int count = 1; count <= 9; count++) {
        sketch s = blank();
        int x = draw_input(&s, 3);
        for (int i = 0; i < count; i++)
            x = draw_relu(&s, draw_conv(&s, x, 3, i % 3 == 2 ? 5 : 3, 1, true));
        finish(&s, x);
        tess_bound *bound = NULL;
        tess_error error = {{0}};
        CHECK(tess_bound_create(s.net, device, TESS_F32, &bound, &error) == TESS_OK);
        CHECK_MSG(tess_bound_alignment(bound) == 1 && tess_bound_reach(bound) == count + count / 3,
                  "%d convolutions: reach %lld, alignment %lld", count, (long long)tess_bound_reach(bound),
                  (long long)tess_bound_alignment(bound));
        tess_bound_destroy(bound);
        sketch_clear(&s);
    }
}

/* DRUNet: the arena is as small as any could be, at every size. */
static void test_drunet_arena(tess_device *device)
{
    tensor_list list = {0};
    add_drunet(&list, &(drunet_shape){"", 3, {16, 32, 48, 64}, 2, true});
    save_tensors(&list, path);
    tess_weights *weights = NULL;
    tess_model_net model = {0};
    tess_bound *bound = NULL;
    tess_error error = {{0}};
    CHECK_MSG(tess_weights_open(path, &weights, &error) == TESS_OK, "%s", error.text);
    CHECK_MSG(tess_model_recognise(weights, &model, &error) == TESS_OK, "%s", error.text);
    CHECK(tess_bound_create(model.net, device, TESS_F32, &bound, &error) == TESS_OK);
    CHECK(tess_net_grid(model.net, TESS_HEIGHT) == 8 && tess_bound_alignment(bound) % 8 == 0);
    for (int64_t h = 8; h <= 512; h *= 2)
        for (int64_t w = 8; w <= 512; w += 168) {
            tess_net_plan *plan = NULL;
            CHECK(tess_net_plan_create(bound, (tess_plan_shape){1, h, w}, &plan, &error) == TESS_OK);
            CHECK_MSG(tess_net_plan_arena_bytes(plan) == tess_net_plan_lower_bound(plan),
                      "%lldx%lld: %zu for %zu", (long long)h, (long long)w, tess_net_plan_arena_bytes(plan),
                      tess_net_plan_lower_bound(plan));
            CHECK(tess_net_plan_lower_bound(plan) >= 2 * image_bytes(h, w, 16)); /* one scale's block */
            tess_net_plan_destroy(plan);
        }
    tess_net_plan *plan = NULL; /* 2^62 values of four bytes */
    tess_plan_shape far = {1, (int64_t)1 << 28, (int64_t)1 << 30};
    CHECK(tess_net_plan_create(bound, far, &plan, &error) == TESS_OVER_LIMIT && !plan);
    tess_bound_destroy(bound);
    tess_model_clear(&model);
    tess_weights_close(weights);
}

int main(void)
{
    const char *temporary = getenv("TMPDIR");
    char folder[256];
    snprintf(folder, sizeof folder, "%s/tessera-net-XXXXXX", temporary ? temporary : "/tmp");
    if (!mkdtemp(folder))
        return check_skip("no folder for temporary files");
    snprintf(path, sizeof path, "%s/net.safetensors", folder);
    const tess_device_options options = {.memory = &test_counter, .threads = 2};
    tess_device *device = NULL;
    tess_device_facts facts;
    tess_error error = {{0}};
    CHECK_MSG(tess_registry_open("cpu", &options, &device, &error) == TESS_OK, "%s", error.text);
    device->facts(device, &facts);
    test_fused(device);
    test_not_fused();
    test_concat(device);
    test_in_place(device);
    test_direct_reach(device);
    test_drunet_arena(device);
    test_against_plain(device, 60);
    test_reach(device, TESS_F32, 20);
    test_chain_reach(device, TESS_F32);
    if (facts.bf16) {
        test_reach(device, TESS_BF16, 8);
        test_chain_reach(device, TESS_BF16);
    }
    tess_registry_close(device);
    const tess_device_options plainest = {.memory = &test_counter, .threads = 2, .isa = "reference"};
    CHECK_MSG(tess_registry_open("cpu", &plainest, &device, &error) == TESS_OK, "%s", error.text);
    test_against_plain(device, 20);
    tess_registry_close(device);
    unlink(path);
    CHECK(rmdir(folder) == 0);
    return check_end();
}
