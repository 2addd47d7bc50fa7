/* UNet as in deepinv: double convolutions with batch norm at two to five scales, max-pooling down, nearest
 * upsampling and a convolution up, skips that concatenate, and a 1x1 convolution at the end, added to the
 * image. */
#include "model/architecture.h"

enum { MOST_SCALES = 5 };

static bool matches(const tess_weights *weights, const char *prefix)
{
    return tess_kernel_of(weights, tess_name_of(prefix, "Conv1.0").text) &&
           tess_kernel_of(weights, tess_name_of(prefix, "Up_conv2.0").text) &&
           tess_kernel_of(weights, tess_name_of(prefix, "Conv_1x1").text);
}

/* Adds the convolution at `place` of a sequence, its batch norm if there is one, and the ReLU. Moves *place
 * past them. */
static tess_value conv_relu(const tess_weights *weights, tess_net *net, tess_value x, const char *sequence,
                            int *place, tess_error *error)
{
    x = tess_emit_conv(weights, net, x, tess_name_of(sequence, ".%d", *place).text, 1, 1, error);
    tess_name norm = tess_name_of(sequence, ".%d", *place + 1);
    bool has_norm = tess_has_tensor(weights, norm.text, "running_mean");
    if (has_norm)
        x = tess_net_batch_norm(net, x, norm.text);
    *place += has_norm ? 3 : 2;
    return tess_net_activate(net, x, TESS_RELU);
}

static tess_value double_conv(const tess_weights *weights, tess_net *net, tess_value x, tess_name sequence,
                              tess_error *error)
{
    int place = 0;
    x = conv_relu(weights, net, x, sequence.text, &place, error);
    return conv_relu(weights, net, x, sequence.text, &place, error);
}

static tess_value build(const tess_weights *weights, const char *prefix, tess_model_net *model,
                        tess_error *error)
{
    tess_net *net = model->net;
    model->channels = tess_kernel_of(weights, tess_name_of(prefix, "Conv1.0").text)->dims[1];
    tess_value image = tess_net_input(net, model->channels), encoded[MOST_SCALES], x = image;
    int scales = 0;
    for (; scales < MOST_SCALES; scales++) {
        tess_name name = tess_name_of(prefix, "Conv%d", scales + 1);
        if (!tess_kernel_of(weights, tess_name_of(name.text, ".0").text))
            break;
        if (scales)
            x = tess_net_max_pool(net, x);
        x = encoded[scales] = double_conv(weights, net, x, name, error);
    }
    for (int scale = scales; scale >= 2; scale--) {
        int place = 1; /* after the upsampling */
        x = conv_relu(weights, net, tess_net_upsample(net, x), tess_name_of(prefix, "Up%d", scale).text,
                      &place, error);
        x = tess_net_concat(net, encoded[scale - 2], x);
        x = double_conv(weights, net, x, tess_name_of(prefix, "Up_conv%d", scale), error);
    }
    tess_name last = tess_name_of(prefix, "Conv_1x1");
    x = tess_emit_conv(weights, net, x, last.text, 1, 1, error);
    return tess_emit_add(weights, net, x, image, last.text, error);
}

const tess_architecture tess_unet = {"unet", "Conv1.., Up2.., Up_conv2.., Conv_1x1", matches, build};
