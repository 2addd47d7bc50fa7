/* Networks without a file: of full width with random weights ("random:drunet" and others), for benchmarks and for
 * trials without a download; or of any width, to be trained. Names and shapes are those of the published files, so
 * they are recognised like any file.
 *
 * Standard deviations follow He et al. (2015): sqrt(2 / inputs) before a ReLU, sqrt(1 / inputs) elsewhere, so
 * that activations keep their size through the layers and stay within fp16's range. Layers whose result is
 * added to a residual path get a smaller one: otherwise the variance would double at each of DRUNet's 28
 * blocks. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/synthetic_impl.h"

static const char PREFIX[] = "random:";
static const float SMALL = 0.2f; /* gain of a layer whose result is added to a residual path */

void tess_draw(tess_drawer *d, const char *layer, const char *part, int rank, const int64_t *dims,
               tess_weight_draw how)
{
    tess_name name = tess_name_of(layer, ".%s", part);
    if (d->status == TESS_OK)
        d->status = tess_weights_draw(d->weights, name.text, rank, dims, how, d->error);
}

typedef struct conv {
    int64_t in, out;
    int side;
    float gain; /* of the output variance */
    bool bias;
} conv;

static void draw_conv(tess_drawer *d, tess_name layer, conv c)
{
    const int64_t dims[] = {c.out, c.in, c.side, c.side};
    tess_draw(d, layer.text, "weight", 4, dims,
              (tess_weight_draw){.deviation = sqrtf(c.gain / (float)(c.in * c.side * c.side))});
    if (c.bias)
        tess_draw(d, layer.text, "bias", 1, &c.out, (tess_weight_draw){.deviation = 0.02f});
}

static void draw_norm(tess_drawer *d, tess_name layer, int64_t channels)
{
    tess_draw(d, layer.text, "weight", 1, &channels, (tess_weight_draw){1, 0.1f, false});
    tess_draw(d, layer.text, "bias", 1, &channels, (tess_weight_draw){0, 0.1f, false});
    tess_draw(d, layer.text, "running_mean", 1, &channels, (tess_weight_draw){0, 0.1f, false});
    tess_draw(d, layer.text, "running_var", 1, &channels, (tess_weight_draw){0.7f, 0.3f, true});
}

static void draw_blocks(tess_drawer *d, const char *stage, int first, int count, int64_t width)
{
    for (int i = first; i < first + count; i++) {
        draw_conv(d, tess_name_of(stage, ".%d.res.0", i), (conv){width, width, 3, 2, false});
        draw_conv(d, tess_name_of(stage, ".%d.res.2", i), (conv){width, width, 3, SMALL, false});
    }
}

static void drunet(tess_drawer *d, const tess_model_shape *s)
{
    const int64_t *widths = s->widths;
    const int last = s->width_count - 1;
    draw_conv(d, tess_name_of("m_head", "%s", ""), (conv){s->channels + 1, widths[0], 3, 1, false});
    for (int k = 0; k < last; k++) {
        tess_name stage = tess_name_of("m_down", "%d", k + 1);
        draw_blocks(d, stage.text, 0, s->blocks, widths[k]);
        draw_conv(d, tess_name_of(stage.text, ".%d", s->blocks),
                  (conv){widths[k], widths[k + 1], 2, 1, false});
    }
    draw_blocks(d, "m_body", 0, s->blocks, widths[last]);
    for (int k = last; k >= 1; k--) {
        tess_name stage = tess_name_of("m_up", "%d", k);
        /* Transposed: [in, out, 2, 2], and each output value sums over the inputs of one pixel. */
        const int64_t dims[] = {widths[k], widths[k - 1], 2, 2};
        tess_draw(d, tess_name_of(stage.text, ".0").text, "weight", 4, dims,
                  (tess_weight_draw){.deviation = sqrtf(0.5f / (float)widths[k])});
        draw_blocks(d, stage.text, 1, s->blocks, widths[k - 1]);
    }
    draw_conv(d, tess_name_of("m_tail", "%s", ""), (conv){widths[0], s->channels, 3, SMALL, false});
}

/* A convolution and its batch norm at `place` of a sequence; returns the place after the ReLU. */
static int draw_normed(tess_drawer *d, const tess_model_shape *s, const char *sequence, int place, conv c)
{
    draw_conv(d, tess_name_of(sequence, ".%d", place), c);
    if (s->batch_norm)
        draw_norm(d, tess_name_of(sequence, ".%d", place + 1), c.out);
    return place + (s->batch_norm ? 3 : 2);
}

static void draw_double(tess_drawer *d, const tess_model_shape *s, const char *sequence, int64_t in,
                        int64_t out)
{
    const int second = draw_normed(d, s, sequence, 0, (conv){in, out, 3, 2, true});
    draw_normed(d, s, sequence, second, (conv){out, out, 3, 2, true});
}

static void unet(tess_drawer *d, const tess_model_shape *s)
{
    const int64_t *widths = s->widths;
    for (int k = 0; k < s->width_count; k++)
        draw_double(d, s, tess_name_of("Conv", "%d", k + 1).text, k ? widths[k - 1] : s->channels, widths[k]);
    for (int k = s->width_count - 1; k >= 1; k--) {
        draw_normed(d, s, tess_name_of("Up", "%d", k + 1).text, 1,
                    (conv){widths[k], widths[k - 1], 3, 2, true});
        draw_double(d, s, tess_name_of("Up_conv", "%d", k + 1).text, 2 * widths[k - 1], widths[k - 1]);
    }
    draw_conv(d, tess_name_of("Conv_1x1", "%s", ""), (conv){widths[0], s->channels, 1, SMALL, true});
}

/* With batch norm the names are those of a sequence; it predicts noise, which is subtracted. */
static void dncnn_normed(tess_drawer *d, const tess_model_shape *s)
{
    const int64_t width = s->widths[0];
    draw_conv(d, tess_name_of("dncnn", ".0"), (conv){s->channels, width, 3, 2, false});
    int place = 2;
    for (int i = 0; i < s->depth - 2; i++)
        place = draw_normed(d, s, "dncnn", place, (conv){width, width, 3, 2, false});
    draw_conv(d, tess_name_of("dncnn", ".%d", place), (conv){width, s->channels, 3, SMALL, false});
}

static void dncnn(tess_drawer *d, const tess_model_shape *s)
{
    const int64_t width = s->widths[0];
    if (s->batch_norm) {
        dncnn_normed(d, s);
        return;
    }
    draw_conv(d, tess_name_of("in_conv", "%s", ""), (conv){s->channels, width, 3, 2, true});
    for (int i = 0; i < s->depth - 2; i++)
        draw_conv(d, tess_name_of("conv_list", ".%d", i), (conv){width, width, 3, 2, true});
    draw_conv(d, tess_name_of("out_conv", "%s", ""), (conv){width, s->channels, 3, SMALL, true});
}

static const struct {
    const char *architecture;
    void (*list)(tess_drawer *, const tess_model_shape *);
} architectures[] = {
    {"drunet", drunet}, {"unet", unet}, {"dncnn", dncnn}, {"diffusion", tess_draw_diffusion}};

#define FULL_WIDTHS .width_count = 4, .widths = {64, 128, 256, 512}
static const struct {
    const char *name;
    tess_model_shape shape;
} networks[] = {
    {"drunet", {.architecture = "drunet", .channels = 3, FULL_WIDTHS, .blocks = 4}},
    {"drunet-gray", {.architecture = "drunet", .channels = 1, FULL_WIDTHS, .blocks = 4}},
    {"unet", {.architecture = "unet", .channels = 3, FULL_WIDTHS, .batch_norm = true}},
    {"dncnn", {.architecture = "dncnn", .channels = 3, .width_count = 1, .widths = {64}, .depth = 20}},
    {"diffusion",
     {.architecture = "diffusion",
      .channels = 2,
      .width_count = 5,
      .widths = {32, 64, 128, 256, 256},
      .blocks = 2,
      .attention = {false, false, true, true}}}};

static tess_status draw_all(const char *path, const tess_model_shape *shape, uint64_t seed,
                            tess_weights **out, tess_error *error)
{
    tess_drawer d = {.error = error};
    TESS_TRY(tess_weights_synthetic(path, seed, &d.weights, error));
    for (size_t i = 0; i < sizeof architectures / sizeof architectures[0]; i++)
        if (strcmp(architectures[i].architecture, shape->architecture) == 0)
            architectures[i].list(&d, shape);
    if (d.status == TESS_OK)
        d.status = tess_weights_drawn(d.weights, error);
    if (d.status != TESS_OK) {
        tess_weights_close(d.weights);
        return d.status;
    }
    *out = d.weights;
    return TESS_OK;
}

tess_status tess_model_new(const tess_model_shape *shape, tess_weights **weights, tess_error *error)
{
    *weights = NULL;
    return draw_all("the new network", shape, 0, weights, error);
}

bool tess_model_is_random(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

tess_status tess_model_open(const char *path, tess_weights **weights, tess_error *error)
{
    *weights = NULL;
    if (!tess_model_is_random(path))
        return tess_weights_open(path, weights, error);
    const char *name = path + strlen(PREFIX), *colon = strchr(name, ':');
    const size_t length = colon ? (size_t)(colon - name) : strlen(name);
    char *end = NULL;
    errno = 0;
    const uint64_t seed = colon ? strtoull(colon + 1, &end, 10) : 0;
    bool right = !colon || (colon[1] >= '0' && colon[1] <= '9' && *end == '\0' && errno == 0);
    for (size_t i = 0; right && i < sizeof networks / sizeof networks[0]; i++)
        if (strlen(networks[i].name) == length && strncmp(name, networks[i].name, length) == 0)
            return draw_all(path, &networks[i].shape, seed, weights, error);
    return tess_fail(
        error, TESS_BAD_OPTION,
        "`model` %s: use random:drunet, random:drunet-gray, random:unet, random:dncnn or random:diffusion, "
        "with :SEED behind it for other values",
        path);
}

/* True for DRUNet's transposed kernels: m_up1.0 and so on. */
static bool is_transposed(const char *name)
{
    const char *up = strstr(name, "m_up"), *rest = up ? strchr(up, '.') : NULL;
    return rest && strcmp(rest, ".0.weight") == 0;
}

tess_status tess_model_open_volume(const char *path, tess_inflation how, tess_weights **weights,
                                   tess_error *error)
{
    TESS_TRY(tess_model_open(path, weights, error));
    for (int64_t i = 0; i < tess_weights_count(*weights); i++)
        if (tess_weights_at(*weights, i)->rank == 5)
            return TESS_OK;
    return tess_weights_inflate(*weights, how == TESS_INFLATE_LEVEL ? is_transposed : NULL, weights, error);
}
