/* architecture.h: the interface of an architecture to the recogniser. */
#ifndef TESS_MODEL_ARCHITECTURE_H
#define TESS_MODEL_ARCHITECTURE_H

#include "model/model.h"

typedef struct tess_architecture {
    const char *name;
    const char *expected; /* tensors that identify it, for the error message */
    /* True when the file holds this architecture, with this prefix before every name. */
    bool (*matches)(const tess_weights *weights, const char *prefix);
    /* Adds the layers to model->net and returns the output; sets channels and noise_map. Returns -1 with an
     * error when a needed tensor is missing or has the wrong shape. */
    tess_value (*build)(const tess_weights *weights, const char *prefix, tess_model_net *model,
                        tess_error *error);
} tess_architecture;

extern const tess_architecture tess_drunet, tess_unet, tess_dncnn;

/* A tensor or layer name: prefix + printf text. */
typedef struct tess_name {
    char text[TESS_LAYER_NAME];
} tess_name;
tess_name tess_name_of(const char *prefix, const char *format, ...) TESS_PRINTF(2, 3);

/* Returns the tensor "<layer>.weight" if it exists with rank 4 or 5 (2-D or 3-D kernels, all sides equal), else
 * NULL. */
const tess_weight *tess_kernel_of(const tess_weights *weights, const char *layer);
bool tess_has_tensor(const tess_weights *weights, const char *layer, const char *part);
/* Adds a convolution with the channels, kernel and bias that the file has for `layer`. Checks the input
 * channels. */
tess_value tess_emit_conv(const tess_weights *weights, tess_net *net, tess_value in, const char *layer,
                          int stride, float scale, tess_error *error);

/* A 3-D kernel is as deep as it is wide. */
tess_layer_window tess_window_of(const tess_weight *kernel, int side, int stride, int pad);

/* Adds a + b; `layer` produced a, and both must have the same channels. */
tess_value tess_emit_add(const tess_weights *weights, tess_net *net, tess_value a, tess_value b,
                         const char *layer, tess_error *error);

#endif
