/* model.h: recognises the network of a weight file from the names and shapes of its tensors, and builds its
 * layers. To add an architecture, add one file with two functions and one line in recognise.c. */
#ifndef TESS_MODEL_MODEL_H
#define TESS_MODEL_MODEL_H

#include "net/net.h"
#include "weights/weights.h"

typedef struct tess_model_net {
    const char *architecture; /* "drunet", "unet", "dncnn" */
    tess_net *net;            /* owned */
    int64_t channels;         /* of the image that it restores */
    bool noise_map;           /* the noise level is an extra input channel */
    double sigma_most; /* highest noise level of its training, on the [0,1] scale; 0 if it takes none */
    bool volume;       /* its kernels are 3-D */
    int64_t parameters;
    int64_t halo, halo_depth;      /* for --halo auto: enough for 0.01 dB, see halo.c */
    int64_t halo_small, halo_tile; /* the halo of tiles smaller than halo_tile; halo_tile 0: not used */
    bool halo_seen;                /* these weights were in the halo study; otherwise the halo is doubled */
} tess_model_net;

tess_status tess_model_recognise(tess_weights *weights, tess_model_net *model,
                                 tess_error *error) TESS_MUST_CHECK;
/* The same for a network that will be trained (tess_net_train). */
tess_status tess_model_recognise_trained(tess_weights *weights, tess_model_net *model,
                                         tess_error *error) TESS_MUST_CHECK;
void tess_model_clear(tess_model_net *model);

/* Finds the weights of a bundled model, or of the file that `name` names. */
tess_status tess_model_find(const char *name, char *path, size_t size, tess_error *error) TESS_MUST_CHECK;
/* Opens the weights at such a path. "random:NAME[:SEED]" gives a network of full width with random values:
 * drunet, drunet-gray, unet, dncnn or diffusion. */
tess_status tess_model_open(const char *path, tess_weights **weights, tess_error *error) TESS_MUST_CHECK;
/* The widths and depths of a network. */
enum { TESS_MODEL_WIDTHS = 8 };
typedef struct tess_model_shape {
    const char *architecture; /* "drunet", "unet", "dncnn", "diffusion" */
    int64_t channels;         /* of the image; diffusion: of its input, the noisy image included */
    int width_count;          /* scales; DnCNN has one */
    int64_t widths[TESS_MODEL_WIDTHS];
    int blocks;      /* DRUNet: residual blocks in a stage; diffusion: at a scale */
    int depth;       /* DnCNN: convolutions */
    bool batch_norm; /* UNet, DnCNN */
    /* Diffusion: the scales with attention, besides the middle; channels of a head, 0: 8; groups of the norms, 0: 32, or
     * the largest power of two that divides all widths. */
    bool attention[TESS_MODEL_WIDTHS];
    int head_channels, groups;
} tess_model_shape;
/* Weights with the names and shapes of such a network, and random values: for a network to be trained. */
tess_status tess_model_new(const tess_model_shape *shape, tess_weights **weights,
                           tess_error *error) TESS_MUST_CHECK;
/* How a 2-D network is made 3-D. */
typedef enum tess_inflation {
    TESS_INFLATE_HALVES, /* all 2x2 kernels are halved, including transposed ones, as deepinv's benchmark does */
    TESS_INFLATE_LEVEL /* transposed ones are not: identical slices then give the result of the 2-D network */
} tess_inflation;
/* The same for volumes: the weights of a 2-D network are inflated to 3-D. */
tess_status tess_model_open_volume(const char *path, tess_inflation how, tess_weights **weights,
                                   tess_error *error) TESS_MUST_CHECK;
bool tess_model_is_random(const char *name);
/* The folders in which bundled models are searched for; the first match wins. Returns false beyond the last
 * index. */
bool tess_model_folder(int index, char *path, size_t size);

#endif
