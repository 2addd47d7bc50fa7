#include "job/fill/fill_list.h"

#include "base/checked.h"
#include "base/mem.h"

enum { NEAR = 4 }; /* guided: deeper in a void than this part of a tile */

/* Sets the flags of a box that are not 0 to `value`. */
static void set_box(const tess_fill_box *b, const tess_fill_tile *t, int64_t h, int64_t w, uint8_t value,
                    uint8_t *flags)
{
    const int64_t from = tess_max_i64(0, b->left - t->left), end = tess_min_i64(w, b->right - t->left);
    for (int64_t y = tess_max_i64(0, b->top - t->top); y < tess_min_i64(h, b->bottom - t->top); y++)
        for (int64_t x = from; x < end; x++)
            flags[y * w + x] = flags[y * w + x] ? value : 0;
}

void tess_fill_tile_wanted(const tess_fill_list *list, const tess_fill_map *map, const tess_fill_tile *tile,
                           uint8_t *flags, int64_t *h, int64_t *w)
{
    enum { OTHERS = 1, OWN = 2 };
    const tess_fill_level *l = &map->levels[tile->level];
    const tess_fill_boxes *boxes = &list->boxes[tile->level];
    const int64_t size = list->grids[tile->level].rows.tile;
    int64_t first, end;
    *h = tess_min_i64(size, l->height - tile->top);
    *w = tess_min_i64(size, l->width - tile->left);
    tess_bitmap_read(&l->wanted, tile->top, tile->left, *h, *w, flags);
    tess_fill_boxes_near(boxes, tile->top, tile->top + *h, &first, &end);
    for (int64_t i = first; i < end; i++)
        set_box(&boxes->list[i], tile, *h, *w, boxes->list[i].place == tile->place ? OWN : 0, flags);
    for (int64_t i = 0; i < *h * *w; i++)
        flags[i] = flags[i] == OWN || (flags[i] == OTHERS && tile->row >= 0);
}

/* Whether a pixel to fill is farther than `depth` from every valid pixel of the tile, along rows and columns. */
static bool is_deep(const tess_fill_level *l, const tess_fill_tile *t, const uint8_t *wanted, int64_t h,
                    int64_t w, int64_t depth)
{
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int64_t from_y = tess_max_i64(0, y - depth), to_y = tess_min_i64(h, y + depth + 1),
                          from_x = tess_max_i64(0, x - depth), to_x = tess_min_i64(w, x + depth + 1);
            if (wanted[y * w + x] &&
                tess_bitmap_count_window(&l->voids, t->top + from_y, t->left + from_x, to_y - from_y,
                                         to_x - from_x) == (to_y - from_y) * (to_x - from_x))
                return true;
        }
    return false;
}

/* Finds what the tile has to fill. */
static void look(const tess_fill_list *list, const tess_fill_map *map, tess_fill_tile *t)
{
    const tess_fill_level *l = &map->levels[t->level];
    const int64_t tile = list->grids[t->level].rows.tile, depth = tile / NEAR;
    int64_t h = tess_min_i64(tile, l->height - t->top), w = tess_min_i64(tile, l->width - t->left);
    t->pixels = 0;
    t->guided = false;
    if (tess_bitmap_count_window(&l->wanted, t->top, t->left, h, w) == 0)
        return;
    tess_fill_tile_wanted(list, map, t, list->wanted, &h, &w);
    for (int64_t i = 0; i < h * w; i++)
        t->pixels += list->wanted[i];
    /* The rest of the tile must be void over such a square for a pixel to be deep. */
    if (t->level + 1 < map->count && t->pixels > 0 &&
        tess_bitmap_count_window(&l->voids, t->top, t->left, h, w) >= depth * depth)
        t->guided = is_deep(l, t, list->wanted, h, w, depth);
}

/* Where a tile begins that has these rows or columns in its middle, as far as the map permits. */
static int64_t centred(int64_t from, int64_t end, const tess_fill_axis *axis)
{
    return tess_max_i64(0, tess_min_i64((from + end - axis->tile) / 2, axis->size - axis->tile));
}

tess_fill_tile tess_fill_tile_of(const tess_fill_list *list, int level, int64_t place)
{
    const tess_fill_grid *g = &list->grids[level];
    const int64_t number = place - tess_fill_grid_places(g);
    if (number < 0) {
        const int64_t row = place / g->columns.count, column = place % g->columns.count;
        return (tess_fill_tile){.level = level,
                                .row = (int32_t)row,
                                .column = (int32_t)column,
                                .place = place,
                                .top = tess_fill_start(&g->rows, row),
                                .left = tess_fill_start(&g->columns, column)};
    }
    const tess_fill_box *around = &list->boxes[level].tiles[number];
    return (tess_fill_tile){.level = level,
                            .row = -1,
                            .column = -1,
                            .place = place,
                            .top = centred(around->top, around->bottom, &g->rows),
                            .left = centred(around->left, around->right, &g->columns)};
}

/* Appends the tiles of a level: in a second pass the guided ones, which the first marks with -2. */
static void add_level(tess_fill_list *list, const tess_fill_map *map, int level)
{
    tess_fill_grid *g = &list->grids[level];
    const int64_t count = tess_fill_grid_places(g) + list->boxes[level].tile_count;
    for (int turn = 0; turn < 2; turn++)
        for (int64_t i = 0; i < count; i++) {
            int64_t *place = &list->places[g->first + i];
            if (turn == 1 && *place != -2)
                continue;
            tess_fill_tile tile = tess_fill_tile_of(list, level, i);
            look(list, map, &tile);
            if (turn == 0)
                *place = tile.pixels == 0 ? -1 : tile.guided ? -2 : list->count;
            if (tile.pixels == 0 || tile.guided != (turn == 1))
                continue;
            *place = list->count;
            list->tiles[list->count++] = tile;
            list->guided += tile.guided;
            list->placed += tile.row < 0;
            g->used |= tile.row >= 0;
        }
}

tess_status tess_fill_list_open(tess_fill_list *list, const tess_fill_map *map, int64_t tile, int64_t overlap,
                                tess_error *error)
{
    int64_t places = 0;
    *list = (tess_fill_list){.overlap = overlap};
    for (int i = 0; i < map->count; i++) {
        tess_fill_grid *g = &list->grids[i];
        TESS_TRY(tess_fill_boxes_open(&list->boxes[i], &map->levels[i], tile - overlap, map->memory, error));
        *g = (tess_fill_grid){.rows = tess_fill_axis_of(map->levels[i].height, tile, overlap),
                              .columns = tess_fill_axis_of(map->levels[i].width, tile, overlap),
                              .first = places};
        places += tess_fill_grid_places(g) + list->boxes[i].count; /* a box a tile at most */
    }
    const size_t each = sizeof *list->places + sizeof *list->tiles;
    TESS_TRY(tess_block_alloc(map->memory, &list->block, TESS_MEM_HOST,
                              (size_t)places * each + (size_t)(tile * tile), error));
    list->places = list->block.data;
    list->tiles = (tess_fill_tile *)(void *)(list->places + places);
    list->wanted = (uint8_t *)(list->tiles + places);
    for (int i = map->count; i-- > 0;) {
        tess_fill_assign(list, map, i);
        add_level(list, map, i);
    }
    return TESS_OK;
}

void tess_fill_list_close(tess_fill_list *list)
{
    for (int i = 0; i < TESS_FILL_LEVELS; i++)
        tess_fill_boxes_close(&list->boxes[i]);
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
