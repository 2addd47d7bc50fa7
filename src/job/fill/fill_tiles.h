/* fill_tiles.h: the grid of tiles of a map, all of one size, and their weights where they overlap.
 *
 * The diffusion model works on squares of one size. They are spread evenly over the map with at least the wanted overlap,
 * so that none hangs over the edge; a map that is smaller than a tile is extended by replication. In an overlap the
 * weight of a tile falls smoothly towards its edge. */
#ifndef TESS_JOB_FILL_TILES_H
#define TESS_JOB_FILL_TILES_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tess_fill_axis {
    int64_t size, tile, count;
} tess_fill_axis;

tess_fill_axis tess_fill_axis_of(int64_t size, int64_t tile, int64_t overlap);
/* Where tile `index` begins. */
int64_t tess_fill_start(const tess_fill_axis *axis, int64_t index);
/* The weight of pixel `at` (0 to tile - 1) of a tile, above 0, at most 1. */
float tess_fill_weight(const tess_fill_axis *axis, int64_t index, int64_t at);
/* The tiles [first, end) that contain a pixel of [from, to). */
void tess_fill_touching(const tess_fill_axis *axis, int64_t from, int64_t to, int64_t *first, int64_t *end);

#endif
