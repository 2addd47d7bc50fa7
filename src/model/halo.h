/* halo.h: the halo that --halo auto uses. */
#ifndef TESS_MODEL_HALO_H
#define TESS_MODEL_HALO_H

#include "model/model.h"

/* The result of the study for a network, in pixels. */
typedef struct tess_halo {
    int64_t plane, depth; /* depth: 0 for a 2-D network, and for a 3-D one made from a 2-D one */
    int64_t small, tile;  /* the halo along an axis whose tiles are smaller than `tile` on average */
    bool seen;            /* these weights were in the study; otherwise the halo is doubled */
} tess_halo;

tess_halo tess_halo_auto(tess_weights *weights, const char *architecture, bool volume);
/* The halo along an axis of `size` pixels that is cut into `tiles` tiles. */
int64_t tess_halo_for(const tess_model_net *model, int64_t size, int64_t tiles);

#endif
