#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "model/architecture.h"
#include "model/diffusion_blocks.h"
#include "model/halo.h"

static const tess_architecture *const known[] = {&tess_drunet, &tess_unet, &tess_dncnn};
static const char *const prefixes[] = {"", "module.", "model.", "net.", "denoiser."};

tess_name tess_name_of(const char *prefix, const char *format, ...)
{
    tess_name name;
    int used = snprintf(name.text, sizeof name.text, "%s", prefix);
    va_list args;
    va_start(args, format);
    vsnprintf(name.text + used, sizeof name.text - (size_t)used, format, args);
    va_end(args);
    return name;
}

bool tess_has_tensor(const tess_weights *weights, const char *layer, const char *part)
{
    char name[TESS_LAYER_NAME + 32];
    snprintf(name, sizeof name, "%s.%s", layer, part);
    return tess_weights_find(weights, name) != NULL;
}

const tess_weight *tess_kernel_of(const tess_weights *weights, const char *layer)
{
    char name[TESS_LAYER_NAME + 32];
    snprintf(name, sizeof name, "%s.weight", layer);
    const tess_weight *weight = tess_weights_find(weights, name);
    if (!weight || weight->rank < 4 || weight->rank > 5 || weight->dims[2] > 7 || weight->dims[2] < 1)
        return NULL;
    for (int i = 3; i < weight->rank; i++)
        if (weight->dims[i] != weight->dims[2])
            return NULL;
    for (int i = 0; i < 2; i++)
        if (weight->dims[i] < 1 || weight->dims[i] > 65536)
            return NULL;
    return weight;
}

tess_layer_window tess_window_of(const tess_weight *kernel, int side, int stride, int pad)
{
    const tess_layer_window image = TESS_WINDOW_2D(side, stride, pad),
                            volume = TESS_WINDOW_3D(side, stride, pad);
    return kernel->rank < 5 ? image : volume;
}

tess_value tess_emit_conv(const tess_weights *weights, tess_net *net, tess_value in, const char *layer,
                          int stride, float scale, tess_error *error)
{
    if (in < 0) /* the first failure was already reported */
        return -1;
    const tess_weight *kernel = tess_kernel_of(weights, layer);
    int64_t channels = tess_net_value(net, in)->channels;
    if (!kernel || kernel->dims[1] != channels) {
        tess_fail(error, TESS_BAD_INPUT, "%s: %s.weight is missing or has not the shape [out, %lld, k, k]",
                  tess_weights_path(weights), layer, (long long)channels);
        return -1;
    }
    int side = (int)kernel->dims[2];
    if (stride == 1 ? side % 2 == 0 : side != stride) {
        tess_fail(error, TESS_BAD_INPUT, "%s: %s.weight has a kernel of %dx%d where %s was expected",
                  tess_weights_path(weights), layer, side, side, stride == 1 ? "an odd one" : "2x2");
        return -1;
    }
    tess_conv_settings settings = {.name = layer,
                                   .channels = kernel->dims[0],
                                   .window = tess_window_of(kernel, side, stride, stride == 1 ? side / 2 : 0),
                                   .bias = tess_has_tensor(weights, layer, "bias"),
                                   .scale = scale};
    return tess_net_conv(net, in, settings);
}

tess_value tess_emit_add(const tess_weights *weights, tess_net *net, tess_value a, tess_value b,
                         const char *layer, tess_error *error)
{
    if (a < 0 || b < 0)
        return -1;
    int64_t made = tess_net_value(net, a)->channels, wanted = tess_net_value(net, b)->channels;
    if (made != wanted) {
        tess_fail(error, TESS_BAD_INPUT, "%s: %s gives %lld channels, but what it is added to has %lld",
                  tess_weights_path(weights), layer, (long long)made, (long long)wanted);
        return -1;
    }
    return tess_net_add(net, a, b);
}

/* True when `tensor` is one of the parts of the layer (or batch norm) `name`. */
static bool is_part(const char *tensor, const char *name, const char *const *parts)
{
    size_t length = strlen(name);
    if (length == 0 || strncmp(tensor, name, length) != 0 || tensor[length] != '.')
        return false;
    for (; *parts; parts++)
        if (strcmp(tensor + length + 1, *parts) == 0)
            return true;
    return false;
}

/* A damaged file must not run as a smaller network: every tensor must belong to a layer, or the file is
 * refused. */
static tess_status check_all_used(const tess_weights *weights, const char *prefix,
                                  const tess_model_net *model, tess_error *error)
{
    static const char *const conv[] = {"weight", "bias", NULL};
    static const char *const norm[] = {"weight", "bias", "running_mean", "running_var", "num_batches_tracked",
                                       NULL};
    for (int64_t t = 0; t < tess_weights_count(weights); t++) {
        const char *name = tess_weights_at(weights, t)->name;
        bool used = strncmp(name, prefix, strlen(prefix)) != 0;
        for (int i = 0; i < tess_net_layer_count(model->net) && !used; i++) {
            const tess_layer *layer = tess_net_layer(model->net, i);
            used = is_part(name, layer->name, layer->kind == TESS_OP_BATCH_NORM ? norm : conv) ||
                   is_part(name, layer->norm, norm);
        }
        if (!used)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "%s: tensor %s belongs to no layer of a %s; the file is damaged or of another architecture",
                tess_weights_path(weights), name, model->architecture);
    }
    return TESS_OK;
}

/* All kernels must have the same rank, and a 3-D network may have only layers that support depth. */
static tess_status check_ranks(const tess_weights *weights, tess_model_net *model, tess_error *error)
{
    int rank = 0;
    bool flat = false;
    for (int i = 0; i < tess_net_layer_count(model->net); i++) {
        const tess_layer *layer = tess_net_layer(model->net, i);
        flat |= layer->kind == TESS_OP_MAX_POOL || layer->kind == TESS_OP_AVERAGE_POOL ||
                layer->kind == TESS_OP_UPSAMPLE;
        if (layer->kind != TESS_OP_CONV && layer->kind != TESS_OP_CONV_TRANSPOSE)
            continue;
        const tess_weight *kernel = tess_kernel_of(weights, layer->name);
        if (rank && kernel && kernel->rank != rank)
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: tensor %s has %d dimensions, others %d; use one with 2-D kernels "
                             "throughout, or 3-D ones",
                             tess_weights_path(weights), kernel->name, kernel->rank, rank);
        rank = kernel ? kernel->rank : rank;
    }
    model->volume = rank == 5;
    if (model->volume && flat)
        return tess_fail(error, TESS_BAD_INPUT, "%s: a %s with 3-D kernels is not known; use a drunet",
                         tess_weights_path(weights), model->architecture);
    return TESS_OK;
}

static tess_status build(const tess_architecture *architecture, tess_weights *weights, const char *prefix,
                         bool train, tess_model_net *model, tess_error *error)
{
    *model = (tess_model_net){.architecture = architecture->name, .net = tess_net_create()};
    if (!model->net)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a network");
    if (train)
        tess_net_train(model->net);
    tess_error trouble = {{0}};
    tess_value out = architecture->build(weights, prefix, model, &trouble);
    tess_status status = TESS_OK;
    if (out < 0)
        status = trouble.text[0] ? tess_fail(error, TESS_BAD_INPUT, "%s", trouble.text)
                                 : tess_fail(error, TESS_NO_MEMORY, "no memory for a network");
    else
        status = tess_net_finish(model->net, out, error);
    if (status == TESS_OK)
        status = check_all_used(weights, prefix, model, error);
    if (status == TESS_OK)
        status = check_ranks(weights, model, error);
    if (status == TESS_OK && model->volume && !train)
        status = tess_net_fold_slices(model->net, weights, error);
    if (status != TESS_OK)
        tess_model_clear(model);
    return status;
}

/* Reports what the file has and what would be accepted. */
static tess_status unknown(const tess_weights *weights, tess_error *error)
{
    char expected[300] = "";
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        size_t used = strlen(expected);
        snprintf(expected + used, sizeof expected - used, "%s%s (%s)", i ? ", " : "", known[i]->name,
                 known[i]->expected);
    }
    int64_t count = tess_weights_count(weights);
    if (tess_diffusion_prefix(weights))
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: is a diffusion network, which fills voids of elevation maps (fill); denoising "
                         "needs a drunet, "
                         "unet or dncnn",
                         tess_weights_path(weights));
    return tess_fail(error, TESS_BAD_INPUT,
                     "%s: unknown architecture: its %lld tensors start with %s; known are %s, with 2-D "
                     "kernels or, all but the unet, 3-D ones",
                     tess_weights_path(weights), (long long)count,
                     count ? tess_weights_at(weights, 0)->name : "nothing", expected);
}

static tess_status recognise(tess_weights *weights, bool train, tess_model_net *model, tess_error *error)
{
    *model = (tess_model_net){0};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++) {
            if (!known[i]->matches(weights, prefixes[p]))
                continue;
            TESS_TRY(build(known[i], weights, prefixes[p], train, model, error));
            for (int64_t t = 0; t < tess_weights_count(weights); t++)
                model->parameters += tess_weights_at(weights, t)->elements;
            const tess_halo halo = tess_halo_auto(weights, model->architecture, model->volume);
            model->halo = halo.plane;
            model->halo_depth = halo.depth;
            model->halo_small = halo.small;
            model->halo_tile = halo.tile;
            model->halo_seen = halo.seen;
            return TESS_OK;
        }
    return unknown(weights, error);
}

tess_status tess_model_recognise(tess_weights *weights, tess_model_net *model, tess_error *error)
{
    return recognise(weights, false, model, error);
}

tess_status tess_model_recognise_trained(tess_weights *weights, tess_model_net *model, tess_error *error)
{
    return recognise(weights, true, model, error);
}

void tess_model_clear(tess_model_net *model)
{
    tess_net_destroy(model->net);
    *model = (tess_model_net){0};
}
