#include "model/diffusion.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model/diffusion_build.h"

/* Buffers of the schedule that a training checkpoint holds: a schedule is chosen for each run. */
static bool is_schedule(const char *name)
{
    static const char *const buffers[] = {"gammas",
                                          "sqrt_recip_gammas",
                                          "sqrt_recipm1_gammas",
                                          "posterior_log_variance_clipped",
                                          "posterior_mean_coef1",
                                          "posterior_mean_coef2"};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        if (strcmp(name, buffers[i]) == 0)
            return true;
    return false;
}

static bool belongs_to(const tess_net *net, const char *tensor)
{
    for (int i = 0; net && i < tess_net_layer_count(net); i++) {
        const char *layer = tess_net_layer(net, i)->name;
        const size_t length = strlen(layer);
        if (length && strncmp(tensor, layer, length) == 0 &&
            (strcmp(tensor + length, ".weight") == 0 || strcmp(tensor + length, ".bias") == 0))
            return true;
    }
    return false;
}

/* A damaged file must not run as a smaller network. Also counts the parameters. */
static tess_status check_all_used(const tess_weights *weights, const char *prefix, tess_diffusion_net *net,
                                  tess_error *error)
{
    for (int64_t t = 0; t < tess_weights_count(weights); t++) {
        const tess_weight *weight = tess_weights_at(weights, t);
        if (strncmp(weight->name, prefix, strlen(prefix)) != 0 || is_schedule(weight->name + strlen(prefix)))
            continue;
        if (!belongs_to(net->step, weight->name) && !belongs_to(net->embedding, weight->name))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "%s: tensor %s belongs to no layer of a diffusion network; the file is damaged or of "
                "another architecture",
                tess_weights_path(weights), weight->name);
        net->parameters += weight->elements;
    }
    return TESS_OK;
}

static tess_status finish(tess_diffusion_builder *b, tess_value out)
{
    if (b->failed)
        return TESS_BAD_INPUT;
    if (out < 0)
        return tess_fail(b->error, TESS_NO_MEMORY, "no memory for a network");
    return tess_net_finish(b->net, out, b->error);
}

static tess_status build_embedding(tess_diffusion_builder b, tess_diffusion_net *net)
{
    b.net = net->embedding;
    tess_diffusion_embed(&b, tess_net_input_vector(b.net, net->levels));
    if (!b.failed)
        tess_diffusion_each(b.shape, b.prefix, tess_diffusion_add_modulation, &b);
    net->table = b.table;
    return finish(&b, b.modulated);
}

static tess_status build_step(tess_diffusion_builder b, tess_diffusion_net *net, bool train)
{
    b.net = net->step;
    if (train)
        tess_net_train(b.net);
    b.value = tess_net_input(b.net, net->channels);
    if (train) {
        tess_diffusion_embed(&b, tess_net_input_vector(b.net, net->levels));
    } else {
        b.modulated = tess_net_input_shared(b.net, net->table);
        tess_net_keep(b.net, b.value);
    }
    if (!b.failed)
        tess_diffusion_each(b.shape, b.prefix, tess_diffusion_add_block, &b);
    net->table = b.table;
    return finish(&b, b.value);
}

static tess_status build(tess_weights *weights, const char *prefix, bool train, double dropout,
                         tess_diffusion_net *net, tess_error *error)
{
    tess_error ignored;
    tess_model_shape shape;
    TESS_TRY(tess_diffusion_shape(weights, prefix, &shape, error));
    tess_diffusion_builder b = {.weights = weights,
                                .prefix = prefix,
                                .shape = &shape,
                                .dropout = dropout,
                                .value = -1,
                                .embedded = -1,
                                .modulated = -1,
                                .error = error ? error : &ignored};
    const int64_t any[] = {-1, -1};
    const tess_weight *first =
        tess_diffusion_expect(&b, tess_name_of(prefix, "cond_embed.0").text, "weight", 2, any);
    if (!first)
        return TESS_BAD_INPUT;
    if (first->dims[1] % 2)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: tensor %s takes %lld values of a noise level, expected an even number",
                         tess_weights_path(weights), first->name, (long long)first->dims[1]);
    net->channels = shape.channels;
    net->levels = first->dims[1];
    net->step = tess_net_create();
    net->embedding = train ? NULL : tess_net_create();
    if (!net->step || (!train && !net->embedding))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a network");
    if (!train)
        TESS_TRY(build_embedding(b, net));
    TESS_TRY(build_step(b, net, train));
    net->grid = tess_net_grid(net->step, TESS_HEIGHT);
    return check_all_used(weights, prefix, net, error);
}

/* Names what the file is, and what would be accepted. */
static tess_status unknown(tess_weights *weights, tess_error *error)
{
    tess_model_net model;
    if (tess_model_recognise(weights, &model, NULL) == TESS_OK) {
        const char *architecture = model.architecture;
        tess_model_clear(&model);
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: is a %s, which denoises images; filling voids needs a diffusion network",
                         tess_weights_path(weights), architecture);
    }
    const int64_t count = tess_weights_count(weights);
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: is no diffusion network: its %lld tensors start with %s, expected "
                     "denoise_fn.input_blocks.0.0.weight and so on",
                     tess_weights_path(weights), (long long)count,
                     count ? tess_weights_at(weights, 0)->name : "nothing");
}

static tess_status recognise(tess_weights *weights, bool train, double dropout, tess_diffusion_net *net,
                             tess_error *error)
{
    *net = (tess_diffusion_net){0};
    const char *prefix = tess_diffusion_prefix(weights);
    if (!prefix)
        return unknown(weights, error);
    const tess_status status = build(weights, prefix, train, dropout, net, error);
    if (status != TESS_OK)
        tess_diffusion_clear(net);
    return status;
}

bool tess_diffusion_has(const tess_weights *weights)
{
    return tess_diffusion_prefix(weights) != NULL;
}

tess_status tess_diffusion_recognise(tess_weights *weights, tess_diffusion_net *net, tess_error *error)
{
    return recognise(weights, false, 0, net, error);
}

tess_status tess_diffusion_recognise_trained(tess_weights *weights, double dropout, tess_diffusion_net *net,
                                             tess_error *error)
{
    return recognise(weights, true, dropout, net, error);
}

void tess_diffusion_clear(tess_diffusion_net *net)
{
    tess_net_destroy(net->embedding);
    tess_net_destroy(net->step);
    *net = (tess_diffusion_net){0};
}

void tess_diffusion_level(double gamma, int64_t levels, float *values)
{
    const int64_t half = levels / 2;
    for (int64_t i = 0; i < half; i++) {
        const double angle = gamma * exp(-log(10000.0) * (double)i / (double)half);
        values[i] = (float)cos(angle);
        values[half + i] = (float)sin(angle);
    }
}
