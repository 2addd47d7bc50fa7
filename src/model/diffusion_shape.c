/* Reads the shape of a diffusion network from a weight file. A residual block that changes the scale has the same tensors as
 * one that does not, so the scales are found by counting: the way up has as many blocks as the way down, and the first of
 * its blocks with a second residual block ends the lowest scale. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/diffusion_blocks.h"

const char *tess_diffusion_prefix(const tess_weights *weights)
{
    static const char *const prefixes[] = {"denoise_fn.", "", "module.denoise_fn.", "module.", "model."};
    static const char *const parts[] = {"input_blocks.", "middle_block.", "output_blocks."};
    for (size_t p = 0; p < sizeof prefixes / sizeof prefixes[0]; p++)
        for (int64_t t = 0; t < tess_weights_count(weights); t++) {
            const char *name = tess_weights_at(weights, t)->name;
            const size_t length = strlen(prefixes[p]);
            for (size_t i = 0; i < sizeof parts / sizeof parts[0] && strncmp(name, prefixes[p], length) == 0;
                 i++)
                if (strncmp(name + length, parts[i], strlen(parts[i])) == 0)
                    return prefixes[p];
        }
    return NULL;
}

/* What the names tell. */
typedef struct census {
    int inputs, outputs; /* blocks on the way down, and up */
    int first_up;        /* the first block of the way up that doubles the image; -1: none */
    const char *other;   /* a tensor of a network that changes scales by convolutions */
} census;

/* Reads "WORD.i.k.rest"; false for other names. */
static bool block_name(const char *name, const char *word, int *i, int *k, const char **rest)
{
    const size_t length = strlen(word);
    int used = 0;
    if (strncmp(name, word, length) != 0 || sscanf(name + length, ".%4d.%4d.%n", i, k, &used) != 2 || !used)
        return false;
    *rest = name + length + used;
    return *i >= 0 && *k >= 0;
}

static void count(const char *name, census *found)
{
    int i, k;
    const char *rest;
    if (block_name(name, "input_blocks", &i, &k, &rest)) {
        found->inputs = i >= found->inputs ? i + 1 : found->inputs;
        if (strncmp(rest, "op.", 3) == 0)
            found->other = name;
    } else if (block_name(name, "output_blocks", &i, &k, &rest)) {
        found->outputs = i >= found->outputs ? i + 1 : found->outputs;
        if (strncmp(rest, "conv.", 5) == 0)
            found->other = name;
        if (k > 0 && strncmp(rest, "in_layers.", 10) == 0 && (found->first_up < 0 || i < found->first_up))
            found->first_up = i;
    }
}

static tess_status count_blocks(const tess_weights *weights, const char *prefix, tess_model_shape *shape,
                                tess_error *error)
{
    census found = {.first_up = -1};
    for (int64_t t = 0; t < tess_weights_count(weights); t++) {
        const char *name = tess_weights_at(weights, t)->name;
        if (strncmp(name, prefix, strlen(prefix)) == 0)
            count(name + strlen(prefix), &found);
    }
    if (found.other)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: tensor %s%s is of a diffusion network that changes scales by convolutions; use one "
            "that does so in residual blocks (resblock_updown)",
            tess_weights_path(weights), prefix, found.other);
    const int each = found.first_up < 0 ? found.outputs : found.first_up + 1;
    if (found.inputs != found.outputs || each < 2 || found.outputs % each ||
        found.outputs / each > TESS_MODEL_WIDTHS || each - 1 > TESS_DIFFUSION_BLOCKS)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: has %d input_blocks and %d output_blocks, the first that doubles the image is %d; a "
            "diffusion network has the same number of both, and up to %d scales of equally many",
            tess_weights_path(weights), found.inputs, found.outputs, found.first_up, TESS_MODEL_WIDTHS);
    shape->width_count = found.outputs / each;
    shape->blocks = each - 1;
    return TESS_OK;
}

/* A whole number of the file's metadata; `least` if there is none. */
static tess_status number_of(const tess_weights *weights, const char *key, int *number, tess_error *error)
{
    const char *text = tess_weights_metadata(weights, key);
    char *end = NULL;
    if (!text)
        return TESS_OK;
    const long value = strtol(text, &end, 10);
    if (end == text || *end || value < 1 || value > 4096)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: the metadata's %s is %s, expected a number from 1 to 4096",
                         tess_weights_path(weights), key, text);
    *number = (int)value;
    return TESS_OK;
}

/* Norms divide every width into groups, attention the widths where it is into heads. */
static tess_status check_divides(const tess_weights *weights, const tess_model_shape *shape,
                                 tess_error *error)
{
    const int64_t groups = tess_diffusion_groups(shape), head = tess_diffusion_head(shape);
    for (int i = 0; i < shape->width_count; i++) {
        const bool attention = shape->attention[i] || i + 1 == shape->width_count;
        if (shape->widths[i] % groups || (attention && shape->widths[i] % head))
            return tess_fail(
                error, TESS_BAD_INPUT,
                "%s: a width of %lld is not a multiple of %lld groups and of heads of %lld channels; give "
                "num_groups and num_head_channels in the file's metadata",
                tess_weights_path(weights), (long long)shape->widths[i], (long long)groups, (long long)head);
    }
    return TESS_OK;
}

/* Any of its tensors will do: if another is missing, the message should say that. */
static bool has_attention(const tess_weights *weights, const char *block)
{
    return tess_has_tensor(weights, block, "norm.weight") || tess_has_tensor(weights, block, "qkv.weight") ||
           tess_has_tensor(weights, block, "proj_out.weight");
}

tess_status tess_diffusion_shape(const tess_weights *weights, const char *prefix, tess_model_shape *shape,
                                 tess_error *error)
{
    *shape = (tess_model_shape){.architecture = "diffusion"};
    TESS_TRY(count_blocks(weights, prefix, shape, error));
    for (int scale = -1; scale < shape->width_count; scale++) {
        const int index = 1 + scale * (shape->blocks + 1);
        const tess_name layer = scale < 0 ? tess_name_of(prefix, "input_blocks.0.0")
                                          : tess_name_of(prefix, "input_blocks.%d.0.out_layers.3", index);
        const tess_weight *kernel = tess_kernel_of(weights, layer.text);
        if (!kernel || kernel->rank != 4)
            return tess_fail(error, TESS_BAD_INPUT,
                             "%s: tensor %s.weight is missing, expected [out, in, 3, 3]",
                             tess_weights_path(weights), layer.text);
        if (scale < 0) {
            shape->channels = kernel->dims[1];
            continue;
        }
        shape->widths[scale] = kernel->dims[0];
        shape->attention[scale] =
            has_attention(weights, tess_name_of(prefix, "input_blocks.%d.1", index).text);
    }
    TESS_TRY(number_of(weights, "num_head_channels", &shape->head_channels, error));
    TESS_TRY(number_of(weights, "num_groups", &shape->groups, error));
    return check_divides(weights, shape, error);
}
