/* halo.h: the halo that --halo auto takes. */
#ifndef TESS_MODEL_HALO_H
#define TESS_MODEL_HALO_H

#include "model/model.h"

/* What the study says of a network, in pixels. */
typedef struct tess_halo {
    int64_t plane, depth; /* depth: 0 for a 2-D network, and for a 3-D one made from it */
    int64_t small, tile;  /* the halo along an axis whose tiles are smaller than `tile` on the average */
    bool seen;            /* these very weights were part of it; otherwise the answer is doubled */
} tess_halo;

tess_halo tess_halo_auto(tess_weights *weights, const char *architecture, bool volume);
/* The halo for an axis of `size` pixels in so many tiles. */
int64_t tess_halo_for(const tess_model_net *model, int64_t size, int64_t tiles);

#endif
