/* DRUNet (Zhang et al., 2021): four scales of residual blocks, strided and transposed 2x2 convolutions between
 * them, skips that add, no bias, and the noise level as the last input channel. The file determines the widths
 * and the number of blocks. */
#include <stdlib.h>

#include "model/architecture.h"

static bool matches(const tess_weights *weights, const char *prefix)
{
    return tess_kernel_of(weights, tess_name_of(prefix, "m_head").text) &&
           tess_kernel_of(weights, tess_name_of(prefix, "m_tail").text) &&
           tess_kernel_of(weights, tess_name_of(prefix, "m_body.0.res.0").text);
}

typedef struct builder {
    const tess_weights *weights;
    const char *prefix;
    tess_net *net;
    tess_error *error;
} builder;

static bool has_block(const builder *b, const char *stage, int index)
{
    return tess_kernel_of(b->weights, tess_name_of(b->prefix, "%s.%d.res.0", stage, index).text) != NULL;
}

/* y = x + conv(relu(conv(x))) for every block of the stage from `index` on. Sets *index to the position after
 * the last. */
static tess_value blocks(const builder *b, tess_value x, const char *stage, int *index)
{
    for (; has_block(b, stage, *index); ++*index) {
        tess_name first = tess_name_of(b->prefix, "%s.%d.res.0", stage, *index);
        tess_name second = tess_name_of(b->prefix, "%s.%d.res.2", stage, *index);
        tess_value y = tess_net_activate(
            b->net, tess_emit_conv(b->weights, b->net, x, first.text, 1, 1, b->error), TESS_RELU);
        y = tess_emit_conv(b->weights, b->net, y, second.text, 1, 1, b->error);
        x = tess_emit_add(b->weights, b->net, y, x, second.text, b->error);
    }
    return x;
}

static tess_value down(const builder *b, tess_value x, const char *stage)
{
    int index = 0;
    x = blocks(b, x, stage, &index);
    return tess_emit_conv(b->weights, b->net, x, tess_name_of(b->prefix, "%s.%d", stage, index).text, 2, 1,
                          b->error);
}

static tess_value up(const builder *b, tess_value x, const char *stage)
{
    if (x < 0)
        return -1;
    tess_name name = tess_name_of(b->prefix, "%s.0", stage);
    const tess_weight *kernel = tess_kernel_of(b->weights, name.text);
    if (!kernel || kernel->dims[2] != 2 || kernel->dims[0] != tess_net_value(b->net, x)->channels) {
        tess_fail(b->error, TESS_BAD_INPUT, "%s: %s.weight is missing or has not the shape [in, out, 2, 2]",
                  tess_weights_path(b->weights), name.text);
        return -1;
    }
    tess_conv_settings settings = {.name = name.text,
                                   .channels = kernel->dims[1],
                                   .window = tess_window_of(kernel, 2, 2, 0),
                                   .bias = tess_has_tensor(b->weights, name.text, "bias")};
    x = tess_net_conv_transpose(b->net, x, settings);
    int index = 1;
    return blocks(b, x, stage, &index);
}

static tess_value skip(const builder *b, tess_value y, tess_value x, const char *stage)
{
    return tess_emit_add(b->weights, b->net, y, x, tess_name_of(b->prefix, "%s", stage).text, b->error);
}

/* The file may say it. Otherwise: Zhang et al. (2021) train with levels from 0 to 50/255. */
static double trained_sigma(const tess_weights *weights)
{
    const char *text = tess_weights_metadata(weights, "sigma_max");
    char *end = NULL;
    const double most = text ? strtod(text, &end) : 0;
    return text && end != text && *end == 0 && most > 0 && most <= 1 ? most : 0.2;
}

static tess_value build(const tess_weights *weights, const char *prefix, tess_model_net *model,
                        tess_error *error)
{
    const builder b = {weights, prefix, model->net, error};
    tess_name head = tess_name_of(prefix, "m_head"), tail = tess_name_of(prefix, "m_tail");
    int64_t in = tess_kernel_of(weights, head.text)->dims[1];
    model->channels = tess_kernel_of(weights, tail.text)->dims[0];
    model->noise_map = in == model->channels + 1;
    model->sigma_most = model->noise_map ? trained_sigma(weights) : 0;
    if (!model->noise_map && in != model->channels) {
        tess_fail(error, TESS_BAD_INPUT,
                  "%s: m_head takes %lld channels, expected %lld (image and noise level)",
                  tess_weights_path(weights), (long long)in, (long long)model->channels + 1);
        return -1;
    }
    tess_value x1 =
        tess_emit_conv(weights, model->net, tess_net_input(model->net, in), head.text, 1, 1, error);
    tess_value x2 = down(&b, x1, "m_down1"), x3 = down(&b, x2, "m_down2"), x4 = down(&b, x3, "m_down3");
    int index = 0;
    tess_value y = blocks(&b, x4, "m_body", &index);
    y = up(&b, skip(&b, y, x4, "m_body"), "m_up3");
    y = up(&b, skip(&b, y, x3, "m_up3"), "m_up2");
    y = up(&b, skip(&b, y, x2, "m_up2"), "m_up1");
    return tess_emit_conv(weights, model->net, skip(&b, y, x1, "m_up1"), tail.text, 1, 1, error);
}

const tess_architecture tess_drunet = {"drunet", "m_head, m_down1.., m_body, m_up1.., m_tail", matches,
                                       build};
