/* grid.h: how an image is cut into tiles. Tiles start at multiples of the alignment. Each is computed from a
 * window that is larger by the halo, limited by the image's edges. Windows at the edges are not shifted
 * inwards, so no pixel is computed at two different positions. Either the tiles are equal to within one
 * alignment step, or the windows are. */
#ifndef TESS_TILE_GRID_H
#define TESS_TILE_GRID_H

#include <stdbool.h>
#include <stdint.h>

/* One axis of a tile: it writes [from, to) and reads [window_from, window_to). */
typedef struct tess_span {
    int64_t from, to, window_from, window_to;
} tess_span;

typedef struct tess_axis {
    int64_t size; /* padded to a multiple of the network's grid */
    int64_t alignment, halo;
    int64_t tiles;
    int64_t edge; /* extra alignment steps of the first and the last tile */
} tess_axis;

/* `tile`: the largest size of a tile, at least one alignment step. 0 or more than `size`: one tile. */
tess_axis tess_axis_cut(int64_t size, int64_t tile, int64_t halo, int64_t alignment);
/* Cuts into `tiles` tiles, or as many as there are steps. Tiles at the image's edges have a halo on one side
 * only and are larger by it, so that the largest window, which determines the memory, is as small as possible. */
tess_axis tess_axis_split(int64_t size, int64_t tiles, int64_t halo, int64_t alignment);
tess_span tess_axis_span(const tess_axis *axis, int64_t index);
/* The largest tile, and the largest window. */
int64_t tess_axis_largest_tile(const tess_axis *axis);
int64_t tess_axis_largest_window(const tess_axis *axis);
/* Sum of all windows: the pixels that are computed. */
int64_t tess_axis_total_window(const tess_axis *axis);

/* The number of tiles from `first` on, up to `limit`, whose windows have the same size. */
int64_t tess_axis_run(const tess_axis *axis, int64_t first, int64_t limit);

#endif
