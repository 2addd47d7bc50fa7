/* diffusion_build.h: the layers of a diffusion network, for recognition. */
#ifndef TESS_MODEL_DIFFUSION_BUILD_H
#define TESS_MODEL_DIFFUSION_BUILD_H

#include "model/diffusion_blocks.h"

/* A network under construction. The first failure is kept: later calls do nothing. */
typedef struct tess_diffusion_builder {
    const tess_weights *weights;
    const char *prefix;
    const tess_model_shape *shape;
    tess_net *net;
    double dropout;
    tess_value value;     /* the last output */
    tess_value embedded;  /* embedding, training: what the linear layers of the blocks read; else -1 */
    tess_value modulated; /* embedding: scales and shifts so far; step: the input with all of them */
    int64_t table;        /* scales and shifts so far */
    tess_value saved[TESS_MODEL_WIDTHS * (TESS_DIFFUSION_BLOCKS + 1)];
    int saved_count;
    bool failed;
    tess_error *error;
} tess_diffusion_builder;

/* The tensor of a layer, which must have this shape; NULL after a failure. Sizes of -1 may be any. */
const tess_weight *tess_diffusion_expect(tess_diffusion_builder *b, const char *layer, const char *part,
                                         int rank, const int64_t *dims);
/* The two linear layers and the activations before those of the blocks: sets `embedded`. */
void tess_diffusion_embed(tess_diffusion_builder *b, tess_value levels);
/* Visitors: adds a block's linear layer to `modulated`, or all of its other layers (and, in training, that one). */
bool tess_diffusion_add_modulation(void *builder, const tess_diffusion_block *block);
bool tess_diffusion_add_block(void *builder, const tess_diffusion_block *block);

#endif
