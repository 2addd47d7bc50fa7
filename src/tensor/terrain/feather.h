/* feather.h: weights that blend overlapping tiles. Along one axis the weights of neighbours add up to 1 at every pixel of
 * their overlap, with a smooth step (3 t^2 - 2 t^3), so that neither the surface nor its slope jumps; the weight of a pixel
 * is the product of both axes. */
#ifndef TESS_TENSOR_TERRAIN_FEATHER_H
#define TESS_TENSOR_TERRAIN_FEATHER_H

#include <stdint.h>

/* Weights of the `size` pixels of a tile; `before` and `after`: pixels that it shares with the tiles beside it (0: none),
 * together at most `size`. */
void tess_feather(int64_t size, int64_t before, int64_t after, float *weights);

#endif
