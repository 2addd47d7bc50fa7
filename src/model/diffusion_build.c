/* The layers of a diffusion network. Every tensor is checked against the shape that the network's widths demand before its
 * layer is added, so that a damaged file is named with the tensor and what was expected. */
#include "model/diffusion_build.h"

#include <stdio.h>
#include <string.h>

#include "net/blocks.h"

/* Writes "[a, b, c]"; sizes of -1 as "any". */
static void describe(char *text, size_t size, int rank, const int64_t *dims)
{
    size_t used = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < rank && used < size; i++)
        used += (size_t)(dims[i] < 0
                             ? snprintf(text + used, size - used, i ? ", any" : "any")
                             : snprintf(text + used, size - used, i ? ", %lld" : "%lld", (long long)dims[i]));
    if (used < size)
        snprintf(text + used, size - used, "]");
}

const tess_weight *tess_diffusion_expect(tess_diffusion_builder *b, const char *layer, const char *part,
                                         int rank, const int64_t *dims)
{
    if (b->failed)
        return NULL;
    const tess_name name = tess_name_of(layer, ".%s", part);
    const tess_weight *found = tess_weights_find(b->weights, name.text);
    bool fits = found && found->rank == rank;
    for (int i = 0; fits && i < rank; i++)
        fits = found->dims[i] == dims[i] || (dims[i] < 0 && found->dims[i] > 0 && found->dims[i] <= 65536);
    if (fits)
        return found;
    char wanted[96], has[160] = "is missing";
    describe(wanted, sizeof wanted, rank, dims);
    if (found) {
        char shape[96];
        describe(shape, sizeof shape, found->rank, found->dims);
        snprintf(has, sizeof has, "has the shape %s", shape);
    }
    b->failed = true;
    tess_fail(b->error, TESS_BAD_INPUT, "%s: tensor %s %s, expected %s", tess_weights_path(b->weights),
              name.text, has, wanted);
    return NULL;
}

/* A layer with weight and bias: a convolution of `side` x `side` (rank 4), or of one tap with fewer sizes in the file. */
static tess_value conv(tess_diffusion_builder *b, tess_value in, tess_name layer, int64_t channels, int side,
                       int rank)
{
    if (in < 0) /* no memory, or already reported */
        return -1;
    const int64_t dims[] = {channels, tess_net_value(b->net, in)->channels, side, side};
    tess_diffusion_expect(b, layer.text, "weight", rank, dims);
    if (!tess_diffusion_expect(b, layer.text, "bias", 1, &channels))
        return -1;
    const tess_conv_settings settings = {.name = layer.text,
                                         .channels = channels,
                                         .window = TESS_WINDOW_2D(side, 1, side / 2),
                                         .bias = true,
                                         .rank = rank < 4 ? rank : 0};
    return tess_net_conv(b->net, in, settings);
}

static tess_value linear(tess_diffusion_builder *b, tess_value in, tess_name layer, int64_t channels)
{
    return conv(b, in, layer, channels, 1, 2);
}

static tess_value norm(tess_diffusion_builder *b, tess_value in, tess_name layer,
                       const tess_value *scale_shift)
{
    if (in < 0)
        return -1;
    const int64_t channels = tess_net_value(b->net, in)->channels;
    tess_diffusion_expect(b, layer.text, "weight", 1, &channels);
    if (!tess_diffusion_expect(b, layer.text, "bias", 1, &channels))
        return -1;
    return tess_net_group_norm(b->net, in,
                               (tess_group_norm_settings){.name = layer.text,
                                                          .groups = (int)tess_diffusion_groups(b->shape),
                                                          .scale_shift = scale_shift});
}

static tess_value resampled(tess_net *net, tess_value in, int resample)
{
    return resample == 0 ? in : resample > 0 ? tess_net_average_pool(net, in) : tess_net_upsample(net, in);
}

void tess_diffusion_embed(tess_diffusion_builder *b, tess_value levels)
{
    const tess_name first = tess_name_of(b->prefix, "cond_embed.0"),
                    second = tess_name_of(b->prefix, "cond_embed.2");
    const int64_t any[] = {-1, -1};
    const tess_weight *weight = tess_diffusion_expect(b, first.text, "weight", 2, any);
    const int64_t hidden = weight ? weight->dims[0] : 0;
    const tess_value h = tess_net_activate(b->net, linear(b, levels, first, hidden), TESS_SILU);
    b->embedded = tess_net_activate(b->net, linear(b, h, second, hidden), TESS_SILU);
}

bool tess_diffusion_add_modulation(void *builder, const tess_diffusion_block *block)
{
    tess_diffusion_builder *b = builder;
    if (block->kind != TESS_DIFFUSION_RESIDUAL)
        return true;
    const tess_value own =
        linear(b, b->embedded, tess_name_of(block->name.text, ".emb_layers.1"), 2 * block->out);
    b->modulated = b->table ? tess_net_concat(b->net, b->modulated, own) : own;
    b->table += 2 * block->out;
    return b->modulated >= 0;
}

/* Scales and shifts of a block: from its linear layer in training, else from the table. */
static tess_value modulation(tess_diffusion_builder *b, const tess_diffusion_block *block)
{
    const int64_t first = b->table, count = 2 * block->out;
    b->table += count;
    return b->embedded >= 0 ? linear(b, b->embedded, tess_name_of(block->name.text, ".emb_layers.1"), count)
                            : tess_net_slice(b->net, b->modulated, first, count);
}

/* The convolution before the addition is the last layer, so that the addition becomes its end. The skip convolution follows
 * the first norm, which reads the same value, so that a device can run both at once. What is resampled for the addition is
 * resampled as late as possible, as the smaller of the two images of a doubling is the one to hold. */
static tess_value residual(tess_diffusion_builder *b, const tess_diffusion_block *block, tess_value x)
{
    const char *name = block->name.text;
    tess_net *net = b->net;
    tess_value h = tess_net_activate(net, norm(b, x, tess_name_of(name, ".in_layers.0"), NULL), TESS_SILU);
    const bool skips = block->in != block->out, early = skips && block->resample == 0;
    const tess_name skip = tess_name_of(name, ".skip_connection");
    if (early)
        x = conv(b, x, skip, block->out, 1, 4);
    h = conv(b, resampled(net, h, block->resample), tess_name_of(name, ".in_layers.2"), block->out, 3, 4);
    const tess_value scale_shift = modulation(b, block);
    h = tess_net_activate(net, norm(b, h, tess_name_of(name, ".out_layers.0"), &scale_shift), TESS_SILU);
    if (b->dropout > 0)
        h = tess_net_dropout(net, h, b->dropout);
    x = resampled(net, x, block->resample);
    if (skips && !early)
        x = conv(b, x, skip, block->out, 1, 4);
    return tess_net_add(net, x, conv(b, h, tess_name_of(name, ".out_layers.3"), block->out, 3, 4));
}

static tess_value attention(tess_diffusion_builder *b, const tess_diffusion_block *block, tess_value x)
{
    const char *name = block->name.text;
    const tess_op_attention heads = {(int32_t)(block->out / tess_diffusion_head(b->shape)), true};
    tess_value h = norm(b, x, tess_name_of(name, ".norm"), NULL);
    h = conv(b, h, tess_name_of(name, ".qkv"), 3 * block->out, 1, 3);
    h = tess_net_attention(b->net, h, heads);
    return tess_net_add(b->net, x, conv(b, h, tess_name_of(name, ".proj_out"), block->out, 1, 3));
}

bool tess_diffusion_add_block(void *builder, const tess_diffusion_block *block)
{
    tess_diffusion_builder *b = builder;
    tess_value x = b->value;
    if (block->joins)
        x = tess_net_concat(b->net, x, b->saved[--b->saved_count]);
    switch (block->kind) {
    case TESS_DIFFUSION_CONV:
        x = conv(b, x, block->name, block->out, 3, 4);
        break;
    case TESS_DIFFUSION_RESIDUAL:
        x = residual(b, block, x);
        break;
    case TESS_DIFFUSION_ATTENTION:
        x = attention(b, block, x);
        break;
    case TESS_DIFFUSION_END:
        x = tess_net_activate(b->net, norm(b, x, tess_name_of(block->name.text, ".0"), NULL), TESS_SILU);
        x = conv(b, x, tess_name_of(block->name.text, ".2"), block->out, 3, 4);
        break;
    }
    b->value = x;
    if (block->saves)
        b->saved[b->saved_count++] = x;
    return !b->failed && x >= 0;
}
