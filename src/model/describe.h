/* describe.h: what a weight file is, for records. */
#ifndef TESS_MODEL_DESCRIBE_H
#define TESS_MODEL_DESCRIBE_H

#include "model/diffusion.h"
#include "model/model.h"

/* The network of a weight file, of any kind. */
typedef struct tess_described {
    const char *architecture; /* "drunet", "unet", "dncnn", "diffusion" */
    int64_t channels, parameters;
    tess_model_net model;         /* a network that restores images, or zeros */
    tess_diffusion_net diffusion; /* a diffusion network, or zeros */
    const tess_net *net;          /* of either: what computes */
} tess_described;

tess_status tess_describe(tess_weights *weights, tess_described *out, tess_error *error) TESS_MUST_CHECK;
void tess_described_clear(tess_described *described);

#endif
