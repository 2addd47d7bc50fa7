/* model.h: which network a weight file holds, found from its tensors' names and shapes, as a finished layer
 * list. Whoever adds an architecture adds one file with two functions and one line in recognise.c. */
#ifndef TESS_MODEL_MODEL_H
#define TESS_MODEL_MODEL_H

#include "net/net.h"
#include "weights/weights.h"

typedef struct tess_model_net {
    const char *architecture; /* "drunet", "unet", "dncnn" */
    tess_net *net;            /* owned */
    int64_t channels;         /* of the image it restores */
    bool noise_map;           /* takes the noise level as an extra channel */
    double sigma_most;        /* that it was trained for, on the [0,1] scale; 0 where it takes none */
    bool volume;              /* its kernels are 3-D */
    int64_t parameters;
    int64_t halo, halo_depth;      /* --halo auto: enough for 0.01 dB, see halo.c */
    int64_t halo_small, halo_tile; /* the halo of smaller tiles than this one; tile 0: there is none */
    bool halo_seen; /* these very weights were part of the halo study; otherwise the halo is doubled */
} tess_model_net;

tess_status tess_model_recognise(tess_weights *weights, tess_model_net *model,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_model_clear(tess_model_net *model);

/* The path of a bundled model's weights, or of the file that `name` is. */
tess_status tess_model_find(const char *name, char *path, size_t size, tess_error *error) TESS_MUST_CHECK;
/* The weights at such a path: a file's, or for "random:NAME[:SEED]" those of a network of full width with
 * random values: drunet, drunet-gray, unet or dncnn. */
tess_status tess_model_open(const char *path, tess_weights **weights, tess_error *error) TESS_MUST_CHECK;
/* How a 2-D network becomes a 3-D one. */
typedef enum tess_inflation {
    TESS_INFLATE_HALVES, /* all 2x2 kernels are halved, also transposed ones: what deepinv's benchmark does */
    TESS_INFLATE_LEVEL /* transposed ones are not: slices that are all alike give what the 2-D network gives */
} tess_inflation;
/* The same for volumes: the weights of a 2-D network are inflated to a 3-D one's. */
tess_status tess_model_open_volume(const char *path, tess_inflation how, tess_weights **weights,
                                   tess_error *error) TESS_MUST_CHECK;
bool tess_model_is_random(const char *name);
/* The folders where bundled models are looked for, first match wins; false when there is no such index. */
bool tess_model_folder(int index, char *path, size_t size);

#endif
