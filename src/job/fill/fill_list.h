/* fill_list.h: the tiles that are computed: those with a pixel to fill, of the coarsest map first.
 *
 * A tile is guided when a pixel to fill is so deep in its void that the tile's own valid pixels say little about it; it then
 * starts from the result of the coarser map. The tiles of a level are in two groups, because guided ones take other
 * steps. */
#ifndef TESS_JOB_FILL_LIST_H
#define TESS_JOB_FILL_LIST_H

#include "job/fill/fill_map.h"
#include "job/fill/fill_tiles.h"

typedef struct tess_fill_tile {
    int32_t level, row, column;
    int32_t pixels; /* to fill */
    bool guided;
} tess_fill_tile;

typedef struct tess_fill_grid {
    tess_fill_axis rows, columns;
    int64_t first; /* of this level in `places` */
} tess_fill_grid;

typedef struct tess_fill_list {
    tess_fill_grid grids[TESS_FILL_LEVELS];
    tess_fill_tile *tiles; /* in the order of computation */
    int64_t count, guided;
    int64_t *places; /* of each place of all grids: its tile, or -1 */
    tess_block block;
} tess_fill_list;

tess_status tess_fill_list_open(tess_fill_list *list, const tess_fill_map *map, int64_t tile, int64_t overlap,
                                tess_error *error) TESS_MUST_CHECK;
void tess_fill_list_close(tess_fill_list *list);
/* The tiles [*first, returned value) of this level and group. */
int64_t tess_fill_list_group(const tess_fill_list *list, int level, bool guided, int64_t *first);
/* The tile at a place of a level's grid, or -1. */
static inline int64_t tess_fill_tile_at(const tess_fill_list *list, int level, int64_t row, int64_t column)
{
    const tess_fill_grid *g = &list->grids[level];
    return list->places[g->first + row * g->columns.count + column];
}

#endif
