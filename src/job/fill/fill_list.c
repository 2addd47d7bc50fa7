#include "job/fill/fill_list.h"

#include "base/checked.h"
#include "base/mem.h"

enum { NEAR = 4 }; /* guided: deeper in a void than this part of a tile */

typedef struct seen_tile {
    int64_t pixels;
    bool guided;
} seen_tile;

/* Whether a pixel to fill is farther than `depth` from every valid pixel of the tile, along rows and columns. */
static bool is_deep(const tess_fill_level *l, int64_t top, int64_t left, int64_t h, int64_t w, int64_t depth)
{
    for (int64_t y = top; y < top + h; y++)
        for (int64_t x = tess_bitmap_find(&l->wanted, y, left, true); x < left + w;
             x = tess_bitmap_find(&l->wanted, y, x + 1, true)) {
            const int64_t from_y = tess_max_i64(top, y - depth), to_y = tess_min_i64(top + h, y + depth + 1),
                          from_x = tess_max_i64(left, x - depth),
                          to_x = tess_min_i64(left + w, x + depth + 1);
            if (tess_bitmap_count_window(&l->voids, from_y, from_x, to_y - from_y, to_x - from_x) ==
                (to_y - from_y) * (to_x - from_x))
                return true;
        }
    return false;
}

static seen_tile look(const tess_fill_map *map, const tess_fill_grid *g, int level, int64_t row,
                      int64_t column)
{
    const tess_fill_level *l = &map->levels[level];
    const int64_t top = tess_fill_start(&g->rows, row), left = tess_fill_start(&g->columns, column),
                  h = tess_min_i64(g->rows.tile, l->height - top),
                  w = tess_min_i64(g->columns.tile, l->width - left);
    seen_tile seen = {tess_bitmap_count_window(&l->wanted, top, left, h, w), false};
    /* The rest of the tile must be void over such a square for a pixel to be deep. */
    const int64_t depth = g->rows.tile / NEAR;
    if (level + 1 < map->count && seen.pixels > 0 &&
        tess_bitmap_count_window(&l->voids, top, left, h, w) >= depth * depth)
        seen.guided = is_deep(l, top, left, h, w, depth);
    return seen;
}

/* Appends the tiles of a level: in a second pass the guided ones, which the first marks with -2. */
static void add_level(tess_fill_list *list, const tess_fill_map *map, int level)
{
    const tess_fill_grid *g = &list->grids[level];
    for (int turn = 0; turn < 2; turn++)
        for (int64_t row = 0; row < g->rows.count; row++)
            for (int64_t column = 0; column < g->columns.count; column++) {
                int64_t *place = &list->places[g->first + row * g->columns.count + column];
                const seen_tile seen =
                    turn == 0 || *place == -2 ? look(map, g, level, row, column) : (seen_tile){0, false};
                if (turn == 0)
                    *place = seen.pixels == 0 ? -1 : seen.guided ? -2 : list->count;
                if (seen.pixels == 0 || seen.guided != (turn == 1))
                    continue;
                *place = list->count;
                list->tiles[list->count++] = (tess_fill_tile){.level = level,
                                                              .row = (int32_t)row,
                                                              .column = (int32_t)column,
                                                              .pixels = (int32_t)seen.pixels,
                                                              .guided = seen.guided};
                list->guided += seen.guided;
            }
}

tess_status tess_fill_list_open(tess_fill_list *list, const tess_fill_map *map, int64_t tile, int64_t overlap,
                                tess_error *error)
{
    int64_t places = 0;
    *list = (tess_fill_list){0};
    for (int i = 0; i < map->count; i++) {
        tess_fill_grid *g = &list->grids[i];
        *g = (tess_fill_grid){tess_fill_axis_of(map->levels[i].height, tile, overlap),
                              tess_fill_axis_of(map->levels[i].width, tile, overlap), places};
        places += g->rows.count * g->columns.count;
    }
    TESS_TRY(tess_block_alloc(map->memory, &list->block, TESS_MEM_HOST,
                              (size_t)places * (sizeof(int64_t) + sizeof(tess_fill_tile)), error));
    list->places = list->block.data;
    list->tiles = (tess_fill_tile *)(void *)(list->places + places);
    for (int i = map->count; i-- > 0;)
        add_level(list, map, i);
    return TESS_OK;
}

void tess_fill_list_close(tess_fill_list *list)
{
    tess_block_free(&list->block);
}

int64_t tess_fill_list_group(const tess_fill_list *list, int level, bool guided, int64_t *first)
{
    int64_t begin = 0, end;
    while (begin < list->count && (list->tiles[begin].level != level || list->tiles[begin].guided != guided))
        begin++;
    for (end = begin;
         end < list->count && list->tiles[end].level == level && list->tiles[end].guided == guided;)
        end++;
    *first = begin;
    return end;
}
