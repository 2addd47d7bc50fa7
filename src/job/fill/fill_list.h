/* fill_list.h: the tiles that are computed, of the coarsest map first: tiles of a grid, and tiles that are placed around voids.
 *
 * A void that fits into a tile is filled by one tile alone (fill_boxes.h); others are filled by all tiles of the grid that reach into
 * them, which are blended. A tile is guided when a pixel to fill is so deep in its void that the tile's own valid pixels say little
 * about it; it then starts from the result of the coarser map. The tiles of a level are in two groups, because guided ones take
 * other steps. */
#ifndef TESS_JOB_FILL_LIST_H
#define TESS_JOB_FILL_LIST_H

#include "job/fill/fill_boxes.h"
#include "job/fill/fill_tiles.h"

typedef struct tess_fill_tile {
    int32_t level;
    int32_t row, column; /* in the grid; -1 if it is placed around voids */
    int32_t pixels;      /* to fill */
    int64_t place;       /* of its level: of the grid by rows, then of the placed tiles */
    int64_t top, left;
    bool guided;
} tess_fill_tile;

typedef struct tess_fill_grid {
    tess_fill_axis rows, columns;
    int64_t first; /* of this level in `places` */
    bool used;     /* the grid has a tile */
} tess_fill_grid;

typedef struct tess_fill_list {
    tess_fill_grid grids[TESS_FILL_LEVELS];
    tess_fill_boxes boxes[TESS_FILL_LEVELS];
    tess_fill_tile *tiles; /* in the order of computation */
    int64_t count, guided, placed;
    int64_t overlap; /* of the grid */
    int64_t *places; /* of each place of all levels: its tile, or -1 */
    uint8_t *wanted; /* of a tile, while they are listed */
    tess_block block;
} tess_fill_list;

tess_status tess_fill_list_open(tess_fill_list *list, const tess_fill_map *map, int64_t tile, int64_t overlap,
                                tess_error *error) TESS_MUST_CHECK;
void tess_fill_list_close(tess_fill_list *list);
/* The tiles [*first, returned value) of this level and group. */
int64_t tess_fill_list_group(const tess_fill_list *list, int level, bool guided, int64_t *first);
/* The tile at a place of a level, or -1. */
static inline int64_t tess_fill_tile_at(const tess_fill_list *list, int level, int64_t place)
{
    return list->places[list->grids[level].first + place];
}
static inline int64_t tess_fill_grid_places(const tess_fill_grid *grid)
{
    return grid->rows.count * grid->columns.count;
}
/* A tile that has not been looked at: where it lies. */
tess_fill_tile tess_fill_tile_of(const tess_fill_list *list, int level, int64_t place);
/* Flags of the pixels that this tile fills, without those beyond the edge of the map: h * w, both of which it returns. */
void tess_fill_tile_wanted(const tess_fill_list *list, const tess_fill_map *map, const tess_fill_tile *tile,
                           uint8_t *flags, int64_t *h, int64_t *w);
/* Which tile fills which box of a level (fill_assign.c). */
void tess_fill_assign(tess_fill_list *list, const tess_fill_map *map, int level);

#endif
