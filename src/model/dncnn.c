/* DnCNN (Zhang et al., 2017): a chain of convolutions and ReLUs that predicts a correction of the image. Three
 * variants exist: deepinv's (in_conv, conv_list.N, out_conv; adds its output), KAIR's (model.N; subtracts), and
 * SaoYan's with batch norm (dncnn.N; subtracts). In the last two, N is a position in a sequence: a tensor with
 * running_mean right after a convolution is its batch norm. */
#include <stdio.h>

#include "model/architecture.h"

enum { LONGEST = 400 }; /* positions in a sequence */

static const char *const sequences[] = {"model.", "dncnn."};

static const char *sequence_of(const tess_weights *weights, const char *prefix)
{
    for (int i = 0; i < 2; i++)
        if (tess_kernel_of(weights, tess_name_of(prefix, "%s0", sequences[i]).text) &&
            tess_kernel_of(weights, tess_name_of(prefix, "%s2", sequences[i]).text))
            return sequences[i];
    return NULL;
}

static bool matches(const tess_weights *weights, const char *prefix)
{
    bool deepinv = tess_kernel_of(weights, tess_name_of(prefix, "in_conv").text) &&
                   tess_kernel_of(weights, tess_name_of(prefix, "out_conv").text) &&
                   tess_kernel_of(weights, tess_name_of(prefix, "conv_list.0").text);
    return deepinv || sequence_of(weights, prefix);
}

static tess_value build_list(const tess_weights *weights, const char *prefix, tess_model_net *model,
                             tess_error *error)
{
    tess_name first = tess_name_of(prefix, "in_conv");
    model->channels = tess_kernel_of(weights, first.text)->dims[1];
    tess_value image = tess_net_input(model->net, model->channels);
    tess_value x = tess_net_activate(
        model->net, tess_emit_conv(weights, model->net, image, first.text, 1, 1, error), TESS_RELU);
    for (int i = 0; i < LONGEST; i++) {
        tess_name name = tess_name_of(prefix, "conv_list.%d", i);
        if (!tess_kernel_of(weights, name.text))
            break;
        x = tess_net_activate(model->net, tess_emit_conv(weights, model->net, x, name.text, 1, 1, error),
                              TESS_RELU);
    }
    tess_name last = tess_name_of(prefix, "out_conv");
    return tess_emit_add(weights, model->net, tess_emit_conv(weights, model->net, x, last.text, 1, 1, error),
                         image, last.text, error);
}

static tess_value build_sequence(const tess_weights *weights, const char *prefix, const char *sequence,
                                 tess_model_net *model, tess_error *error)
{
    model->channels = tess_kernel_of(weights, tess_name_of(prefix, "%s0", sequence).text)->dims[1];
    tess_value image = tess_net_input(model->net, model->channels), x = image;
    int last = 0;
    for (int i = 0; i < LONGEST; i++)
        if (tess_kernel_of(weights, tess_name_of(prefix, "%s%d", sequence, i).text))
            last = i;
    for (int i = 0; i <= last; i++) {
        tess_name name = tess_name_of(prefix, "%s%d", sequence, i),
                  norm = tess_name_of(prefix, "%s%d", sequence, i + 1);
        if (!tess_kernel_of(weights, name.text))
            continue;
        x = tess_emit_conv(weights, model->net, x, name.text, 1, i == last ? -1.0f : 1.0f, error);
        if (i < last && tess_has_tensor(weights, norm.text, "running_mean"))
            x = tess_net_batch_norm(model->net, x, norm.text);
        if (i < last)
            x = tess_net_activate(model->net, x, TESS_RELU);
    }
    return tess_emit_add(weights, model->net, x, image, tess_name_of(prefix, "%s%d", sequence, last).text,
                         error);
}

static tess_value build(const tess_weights *weights, const char *prefix, tess_model_net *model,
                        tess_error *error)
{
    const char *sequence = sequence_of(weights, prefix);
    return sequence ? build_sequence(weights, prefix, sequence, model, error)
                    : build_list(weights, prefix, model, error);
}

const tess_architecture tess_dncnn = {"dncnn", "in_conv, conv_list.N, out_conv; model.N; dncnn.N", matches,
                                      build};
