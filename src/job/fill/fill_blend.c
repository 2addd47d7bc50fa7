#include "job/fill/fill_blend.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum { ROWS = 64, PIECE = 256 }; /* rows of a strip; columns that are written at once */
enum { OF_GRID = 1, OF_PLACED }; /* which tiles fill a wanted pixel */

/* A few rows of the level, and one tile. */
typedef struct strip {
    int64_t top, rows, width;
    double *sum, *weight, *deviation; /* of each pixel; the sum becomes the value */
    double *piece;                    /* ROWS * PIECE */
    uint8_t *wanted, *tile_wanted;
    uint8_t *lines; /* of each column: a tile begins or ends there */
    float *entry;   /* of a tile */
    tess_block block;
} strip;

static size_t strip_bytes(int64_t width, int64_t tile, size_t at[8])
{
    const size_t pixels = (size_t)(ROWS * width), square = (size_t)(tile * tile),
                 flags = (size_t)tess_max_i64(tile * tile, ROWS * PIECE);
    const size_t sizes[8] = {
        pixels * 8, pixels * 8, pixels * 8,   (size_t)(ROWS * PIECE) * 8, square * 2 * sizeof(float),
        pixels,     flags,      (size_t)width};
    size_t total = 0;
    for (int i = 0; i < 8; i++) {
        at[i] = total;
        total += (size_t)tess_round_up((int64_t)sizes[i], 64);
    }
    return total;
}

size_t tess_fill_blend_bytes(const tess_fill_map *map, int64_t tile)
{
    size_t at[8];
    return tess_block_granted(strip_bytes(map->levels[0].width, tile, at));
}

static tess_status open_strip(const tess_fill_blend *b, int level, strip *s, tess_error *error)
{
    const tess_fill_grid *g = &b->list->grids[level];
    size_t at[8];
    s->width = b->map->levels[level].width;
    TESS_TRY(tess_block_alloc(b->memory, &s->block, TESS_MEM_HOST, strip_bytes(s->width, g->rows.tile, at),
                              error));
    char *data = s->block.data;
    s->sum = (double *)(void *)(data + at[0]);
    s->weight = (double *)(void *)(data + at[1]);
    s->deviation = (double *)(void *)(data + at[2]);
    s->piece = (double *)(void *)(data + at[3]);
    s->entry = (float *)(void *)(data + at[4]);
    s->wanted = (uint8_t *)data + at[5];
    s->tile_wanted = (uint8_t *)data + at[6];
    s->lines = (uint8_t *)data + at[7];
    memset(s->lines, 0, (size_t)s->width);
    for (int64_t i = 0; g->used && i < g->columns.count; i++) {
        const int64_t start = tess_fill_start(&g->columns, i), end = start + g->columns.tile;
        s->lines[start] |= i > 0;
        if (end < s->width)
            s->lines[end] = 1;
    }
    return TESS_OK;
}

static tess_status add_tile(const tess_fill_blend *b, int level, int64_t id, strip *s, tess_error *error)
{
    const tess_fill_tile *t = &b->list->tiles[id];
    const tess_fill_grid *g = &b->list->grids[level];
    const int64_t count = t->pixels;
    const bool placed = t->row < 0;
    int64_t h, w, next = 0;
    TESS_TRY(tess_fill_journal_read(b->journal, id, s->entry, b->deviations ? 2 * count : count, error));
    tess_fill_tile_wanted(b->list, b->map, t, s->tile_wanted, &h, &w);
    for (int64_t y = 0; y < h; y++) {
        const bool inside = t->top + y >= s->top && t->top + y < s->top + s->rows;
        const double across = placed || !inside ? 1 : (double)tess_fill_weight(&g->rows, t->row, y);
        for (int64_t x = 0; x < w; x++) {
            if (!s->tile_wanted[y * w + x])
                continue;
            const int64_t own = next++, at = (t->top + y - s->top) * s->width + t->left + x;
            if (!inside)
                continue;
            const double weight = placed ? 1 : across * (double)tess_fill_weight(&g->columns, t->column, x);
            s->wanted[at] = placed ? OF_PLACED : OF_GRID;
            s->sum[at] += weight * (double)s->entry[own];
            s->weight[at] += weight;
            s->deviation[at] += b->deviations ? weight * (double)s->entry[count + own] : 0;
        }
    }
    return TESS_OK;
}

/* The values of some rows, in s->sum, without `base`; deviations in s->deviation. */
static tess_status blend_rows(const tess_fill_blend *b, int level, int64_t top, strip *s, tess_error *error)
{
    const tess_fill_grid *g = &b->list->grids[level];
    const tess_fill_level *l = &b->map->levels[level];
    s->top = top;
    s->rows = tess_min_i64(ROWS, l->height - top);
    const int64_t pixels = s->rows * s->width;
    memset(s->sum, 0, (size_t)pixels * sizeof(double));
    memset(s->weight, 0, (size_t)pixels * sizeof(double));
    memset(s->deviation, 0, (size_t)pixels * sizeof(double));
    tess_bitmap_read(&l->wanted, top, 0, s->rows, s->width, s->wanted);
    int64_t first, end;
    tess_fill_touching(&g->rows, top, top + s->rows, &first, &end);
    for (int64_t row = first; row < end; row++)
        for (int64_t column = 0; column < g->columns.count; column++) {
            const int64_t id = tess_fill_tile_at(b->list, level, row * g->columns.count + column);
            if (id >= 0)
                TESS_TRY(add_tile(b, level, id, s, error));
        }
    for (int64_t i = 0; i < b->list->boxes[level].tile_count; i++) {
        const tess_fill_box *all = &b->list->boxes[level].tiles[i];
        if (all->top < top + s->rows && all->bottom > top)
            TESS_TRY(add_tile(b, level, tess_fill_tile_at(b->list, level, tess_fill_grid_places(g) + i), s,
                              error));
    }
    for (int64_t i = 0; i < pixels; i++)
        if (s->wanted[i]) {
            s->sum[i] /= s->weight[i];
            s->deviation[i] *= b->factor / s->weight[i];
        }
    return tess_stop_check(b->stop, error);
}

tess_status tess_fill_blend_level(const tess_fill_blend *blend, int level, tess_error *error)
{
    const tess_fill_level *l = &blend->map->levels[level];
    strip s = {0};
    tess_status status = open_strip(blend, level, &s, error);
    for (int64_t top = 0; status == TESS_OK && top < l->height; top += ROWS) {
        if (tess_bitmap_count_window(&l->wanted, top, 0, tess_min_i64(ROWS, l->height - top), l->width) == 0)
            continue;
        status = blend_rows(blend, level, top, &s, error);
        for (int64_t i = 0; status == TESS_OK && i < s.rows * s.width; i++)
            if (s.wanted[i])
                l->values[top * l->width + i] = (float)s.sum[i];
    }
    tess_block_free(&s.block);
    return status;
}

static void count_seams(const strip *s, tess_fill_seams *seams)
{
    for (int64_t y = 0; y < s->rows; y++)
        for (int64_t x = 1; x + 1 < s->width; x++) {
            const int64_t at = y * s->width + x;
            if (!s->wanted[at] || !s->wanted[at - 1] || !s->wanted[at + 1])
                continue;
            const double change = fabs(s->sum[at - 1] - 2 * s->sum[at] + s->sum[at + 1]);
            const bool line = s->lines[x] && s->wanted[at] == OF_GRID;
            *(line ? &seams->at : &seams->elsewhere) += change;
            *(line ? &seams->pixels : &seams->others) += 1;
        }
}

/* Writes the pieces of a strip that have a filled pixel. */
static tess_status write_pieces(const tess_fill_blend *b, strip *s, const double *values, double plus,
                                tess_raster *addend, tess_raster_output *output, tess_error *error)
{
    for (int64_t left = 0; left < s->width; left += PIECE) {
        const int64_t w = tess_min_i64(PIECE, s->width - left);
        if (tess_bitmap_count_window(&b->map->levels[0].wanted, s->top, left, s->rows, w) == 0)
            continue;
        if (addend)
            TESS_TRY(tess_raster_read(addend, s->top, left, s->rows, w, s->piece, NULL, error));
        for (int64_t y = 0; y < s->rows; y++)
            for (int64_t x = 0; x < w; x++) {
                double *to = &s->piece[y * w + x];
                *to = values[y * s->width + left + x] + plus + (addend ? *to : 0);
            }
        tess_bitmap_read(&b->map->levels[0].wanted, s->top, left, s->rows, w, s->tile_wanted);
        TESS_TRY(tess_raster_output_write(output, s->top, left, s->rows, w, s->piece, s->tile_wanted, error));
    }
    return TESS_OK;
}

tess_status tess_fill_blend_write(const tess_fill_blend *blend, tess_raster_output *output,
                                  tess_raster_output *deviation, tess_raster *addend, tess_fill_seams *seams,
                                  tess_error *error)
{
    const tess_fill_level *l = &blend->map->levels[0];
    strip s = {0};
    *seams = (tess_fill_seams){0};
    tess_status status = open_strip(blend, 0, &s, error);
    for (int64_t top = 0; status == TESS_OK && top < l->height; top += ROWS) {
        if (tess_bitmap_count_window(&l->wanted, top, 0, tess_min_i64(ROWS, l->height - top), l->width) == 0)
            continue;
        status = blend_rows(blend, 0, top, &s, error);
        if (status == TESS_OK)
            count_seams(&s, seams);
        if (status == TESS_OK)
            status = write_pieces(blend, &s, s.sum, blend->map->base, addend, output, error);
        if (status == TESS_OK && deviation)
            status = write_pieces(blend, &s, s.deviation, 0, NULL, deviation, error);
    }
    seams->at /= (double)tess_max_i64(1, seams->pixels);
    seams->elsewhere /= (double)tess_max_i64(1, seams->others);
    tess_block_free(&s.block);
    return status;
}
