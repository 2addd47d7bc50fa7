/* Networks of full width with random weights ("random:drunet" and others), for benchmarks and for trials
 * without a download. Names and shapes are those of the published files, so they are recognised like any file.
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

#include "model/architecture.h"

static const char PREFIX[] = "random:";
static const float SMALL = 0.2f; /* gain of a layer whose result is added to a residual path */

/* A list under construction; keeps the first failure. */
typedef struct drawer {
    tess_weights *weights;
    tess_status status;
    tess_error *error;
} drawer;

static void draw(drawer *d, const char *layer, const char *part, int rank, const int64_t *dims,
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

static void draw_conv(drawer *d, tess_name layer, conv c)
{
    const int64_t dims[] = {c.out, c.in, c.side, c.side};
    draw(d, layer.text, "weight", 4, dims,
         (tess_weight_draw){.deviation = sqrtf(c.gain / (float)(c.in * c.side * c.side))});
    if (c.bias)
        draw(d, layer.text, "bias", 1, &c.out, (tess_weight_draw){.deviation = 0.02f});
}

static void draw_norm(drawer *d, tess_name layer, int64_t channels)
{
    draw(d, layer.text, "weight", 1, &channels, (tess_weight_draw){1, 0.1f, false});
    draw(d, layer.text, "bias", 1, &channels, (tess_weight_draw){0, 0.1f, false});
    draw(d, layer.text, "running_mean", 1, &channels, (tess_weight_draw){0, 0.1f, false});
    draw(d, layer.text, "running_var", 1, &channels, (tess_weight_draw){0.7f, 0.3f, true});
}

static void draw_blocks(drawer *d, const char *stage, int first, int64_t width)
{
    for (int i = first; i < first + 4; i++) {
        draw_conv(d, tess_name_of(stage, ".%d.res.0", i), (conv){width, width, 3, 2, false});
        draw_conv(d, tess_name_of(stage, ".%d.res.2", i), (conv){width, width, 3, SMALL, false});
    }
}

static void drunet(drawer *d, int64_t channels)
{
    static const int64_t widths[] = {64, 128, 256, 512};
    draw_conv(d, tess_name_of("m_head", "%s", ""), (conv){channels + 1, widths[0], 3, 1, false});
    for (int k = 0; k < 3; k++) {
        tess_name stage = tess_name_of("m_down", "%d", k + 1);
        draw_blocks(d, stage.text, 0, widths[k]);
        draw_conv(d, tess_name_of(stage.text, ".4"), (conv){widths[k], widths[k + 1], 2, 1, false});
    }
    draw_blocks(d, "m_body", 0, widths[3]);
    for (int k = 3; k >= 1; k--) {
        tess_name stage = tess_name_of("m_up", "%d", k);
        /* Transposed: [in, out, 2, 2], and each output value sums over the inputs of one pixel. */
        const int64_t dims[] = {widths[k], widths[k - 1], 2, 2};
        draw(d, tess_name_of(stage.text, ".0").text, "weight", 4, dims,
             (tess_weight_draw){.deviation = sqrtf(0.5f / (float)widths[k])});
        draw_blocks(d, stage.text, 1, widths[k - 1]);
    }
    draw_conv(d, tess_name_of("m_tail", "%s", ""), (conv){widths[0], channels, 3, SMALL, false});
}

static void draw_double(drawer *d, const char *sequence, int64_t in, int64_t out)
{
    for (int i = 0; i < 2; i++) {
        draw_conv(d, tess_name_of(sequence, ".%d", 3 * i), (conv){i ? out : in, out, 3, 2, true});
        draw_norm(d, tess_name_of(sequence, ".%d", 3 * i + 1), out);
    }
}

static void unet(drawer *d, int64_t channels)
{
    static const int64_t widths[] = {64, 128, 256, 512};
    for (int k = 0; k < 4; k++)
        draw_double(d, tess_name_of("Conv", "%d", k + 1).text, k ? widths[k - 1] : channels, widths[k]);
    for (int k = 3; k >= 1; k--) {
        tess_name up = tess_name_of("Up", "%d", k + 1);
        draw_conv(d, tess_name_of(up.text, ".1"), (conv){widths[k], widths[k - 1], 3, 2, true});
        draw_norm(d, tess_name_of(up.text, ".2"), widths[k - 1]);
        draw_double(d, tess_name_of("Up_conv", "%d", k + 1).text, 2 * widths[k - 1], widths[k - 1]);
    }
    draw_conv(d, tess_name_of("Conv_1x1", "%s", ""), (conv){widths[0], channels, 1, SMALL, true});
}

static void dncnn(drawer *d, int64_t channels)
{
    enum { WIDTH = 64, MIDDLE = 18 };
    draw_conv(d, tess_name_of("in_conv", "%s", ""), (conv){channels, WIDTH, 3, 2, true});
    for (int i = 0; i < MIDDLE; i++)
        draw_conv(d, tess_name_of("conv_list", ".%d", i), (conv){WIDTH, WIDTH, 3, 2, true});
    draw_conv(d, tess_name_of("out_conv", "%s", ""), (conv){WIDTH, channels, 3, SMALL, true});
}

static const struct {
    const char *name;
    void (*list)(drawer *, int64_t channels);
    int64_t channels;
} networks[] = {{"drunet", drunet, 3}, {"drunet-gray", drunet, 1}, {"unet", unet, 3}, {"dncnn", dncnn, 3}};

bool tess_model_is_random(const char *name)
{
    return strncmp(name, PREFIX, strlen(PREFIX)) == 0;
}

static tess_status open_random(const char *path, size_t which, uint64_t seed, tess_weights **out,
                               tess_error *error)
{
    drawer d = {.error = error};
    TESS_TRY(tess_weights_synthetic(path, seed, &d.weights, error));
    networks[which].list(&d, networks[which].channels);
    if (d.status == TESS_OK)
        d.status = tess_weights_drawn(d.weights, error);
    if (d.status != TESS_OK) {
        tess_weights_close(d.weights);
        return d.status;
    }
    *out = d.weights;
    return TESS_OK;
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
            return open_random(path, i, seed, weights, error);
    return tess_fail(
        error, TESS_BAD_OPTION,
        "`model` %s: use random:drunet, random:drunet-gray, random:unet or random:dncnn, with :SEED "
        "behind it for other values",
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
