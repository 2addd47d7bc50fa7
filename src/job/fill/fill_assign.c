/* Which tile fills which box. A tile of the grid that is computed anyway, because of a void that does not fit into a tile, takes what
 * lies well inside it. For the others there are two ways: tiles that are placed around them, or more tiles of the grid. The way with
 * fewer tiles is taken: the first where voids are few, the second where they are everywhere. */
#include "base/checked.h"
#include "job/fill/fill_list.h"

enum { UNUSED, USED, NEEDED }; /* a tile of the grid: the last has pixels that are in no box */

static int64_t count_pixels(const tess_fill_list *list, const tess_fill_map *map, int level, int64_t place)
{
    const tess_fill_tile tile = tess_fill_tile_of(list, level, place);
    const tess_fill_level *l = &map->levels[level];
    const tess_fill_grid *g = &list->grids[level];
    int64_t h = tess_min_i64(g->rows.tile, l->height - tile.top),
            w = tess_min_i64(g->columns.tile, l->width - tile.left), pixels = 0;
    if (tess_bitmap_count_window(&l->wanted, tile.top, tile.left, h, w) == 0)
        return 0;
    tess_fill_tile_wanted(list, map, &tile, list->wanted, &h, &w);
    for (int64_t i = 0; i < h * w; i++)
        pixels += list->wanted[i];
    return pixels;
}

/* How far [from, end) is from the nearest end of a tile that is not an edge of the map; negative if it reaches beyond. */
static int64_t margin(const tess_fill_axis *axis, int64_t index, int64_t from, int64_t end)
{
    const int64_t start = tess_fill_start(axis, index), before = index > 0 ? from - start : axis->tile,
                  after = index + 1 < axis->count ? start + axis->tile - end : axis->tile;
    return tess_min_i64(before, after);
}

/* The tile of the grid for a box: one that is computed already, or else the one with the widest margin. */
static int64_t find(const tess_fill_list *list, int level, const tess_fill_box *box, const int64_t *state)
{
    const tess_fill_grid *g = &list->grids[level];
    int64_t rows, rows_end, columns, columns_end, best = TESS_FILL_NOWHERE, widest = -1;
    tess_fill_touching(&g->rows, box->top, box->bottom, &rows, &rows_end);
    tess_fill_touching(&g->columns, box->left, box->right, &columns, &columns_end);
    for (int64_t row = rows; row < rows_end; row++)
        for (int64_t column = columns; column < columns_end; column++) {
            const int64_t place = row * g->columns.count + column,
                          inside = tess_min_i64(margin(&g->rows, row, box->top, box->bottom),
                                                margin(&g->columns, column, box->left, box->right));
            if (inside < list->overlap / 2)
                continue;
            const int64_t worth = inside + (state[place] != UNUSED ? g->rows.tile : 0);
            best = worth > widest ? place : best;
            widest = tess_max_i64(worth, widest);
        }
    return best;
}

/* Returns the number of tiles. `more`: tiles of the grid are taken that nothing else needs. */
static int64_t assign(tess_fill_list *list, int level, bool more, int64_t *state)
{
    const int64_t places = tess_fill_grid_places(&list->grids[level]);
    tess_fill_boxes *boxes = &list->boxes[level];
    int64_t used = 0;
    for (int64_t i = 0; i < places; i++)
        state[i] = state[i] == NEEDED ? NEEDED : UNUSED;
    for (int64_t i = 0; i < boxes->count; i++) {
        const int64_t place = find(list, level, &boxes->list[i], state);
        const bool taken = place != TESS_FILL_NOWHERE && (more || state[place] != UNUSED);
        boxes->list[i].place = taken ? place : TESS_FILL_NOWHERE;
        if (taken && state[place] == UNUSED)
            state[place] = USED;
    }
    tess_fill_boxes_place(boxes, places);
    for (int64_t i = 0; i < places; i++)
        used += state[i] != UNUSED;
    return used + boxes->tile_count;
}

void tess_fill_assign(tess_fill_list *list, const tess_fill_map *map, int level)
{
    const int64_t places = tess_fill_grid_places(&list->grids[level]);
    int64_t *state = list->places + list->grids[level].first;
    for (int64_t i = 0; i < places; i++)
        state[i] = count_pixels(list, map, level, i) > 0 ? NEEDED : UNUSED;
    const int64_t with_grid = assign(list, level, true, state), placed = assign(list, level, false, state);
    if (with_grid < placed)
        (void)assign(list, level, true, state);
}
