/* synthetic_impl.h: lists tensors of a network with random values; for the files that know the networks' names and shapes. */
#ifndef TESS_MODEL_SYNTHETIC_IMPL_H
#define TESS_MODEL_SYNTHETIC_IMPL_H

#include "model/architecture.h"

/* A list under construction; keeps the first failure. */
typedef struct tess_drawer {
    tess_weights *weights;
    tess_status status;
    tess_error *error;
} tess_drawer;

void tess_draw(tess_drawer *d, const char *layer, const char *part, int rank, const int64_t *dims,
               tess_weight_draw how);
/* synthetic_diffusion.c */
void tess_draw_diffusion(tess_drawer *d, const tess_model_shape *shape);

#endif
