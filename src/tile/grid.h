/* grid.h: how an image is cut. Tiles start at multiples of the alignment, and each is computed from a window that is
 * larger by the halo, cut off at the image's own edges. Nothing is pulled back, so no pixel is computed from two
 * different places. Either the tiles are equal to within one step of the alignment, or the windows are. */
#ifndef TESS_TILE_GRID_H
#define TESS_TILE_GRID_H

#include <stdbool.h>
#include <stdint.h>

/* One axis: [from, to) is what a tile writes, [window_from, window_to) what it reads. */
typedef struct tess_span {
    int64_t from, to, window_from, window_to;
} tess_span;

typedef struct tess_axis {
    int64_t size; /* padded to the network's grid */
    int64_t alignment, halo;
    int64_t tiles;
    int64_t edge; /* steps of the alignment that the first and the last tile have beyond the others */
} tess_axis;

/* `tile`: the largest size of a tile; at least one alignment step is taken. 0 or more than size: one tile. */
tess_axis tess_axis_cut(int64_t size, int64_t tile, int64_t halo, int64_t alignment);
/* So many tiles, or as many as there are steps. Those at the image's edges have a halo on one side only and are larger
 * by it: the largest window, which memory is planned for, is the smallest possible. */
tess_axis tess_axis_split(int64_t size, int64_t tiles, int64_t halo, int64_t alignment);
tess_span tess_axis_span(const tess_axis *axis, int64_t index);
/* The largest tile, and the largest window. */
int64_t tess_axis_largest_tile(const tess_axis *axis);
int64_t tess_axis_largest_window(const tess_axis *axis);
/* Sum of all windows: what is computed. */
int64_t tess_axis_total_window(const tess_axis *axis);

/* How many tiles from `first` on have windows of one size, up to `limit`. */
int64_t tess_axis_run(const tess_axis *axis, int64_t first, int64_t limit);

#endif
