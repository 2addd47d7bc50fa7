/* The pixels of one tile, from the raster or from a reduced map. */
#include <math.h>

#include "base/checked.h"
#include "job/fill/fill_map.h"

size_t tess_fill_window_bytes(int64_t size)
{
    return (size_t)(size * size) * 2 * sizeof(double);
}

tess_status tess_fill_read(const tess_fill_map *map, int64_t y, int64_t x, int64_t h, int64_t w,
                           double *values, double *more, uint8_t *flags, tess_error *error)
{
    TESS_TRY(tess_raster_read(map->raster, y, x, h, w, values, flags, error));
    return tess_fill_subtract(map, y, x, h, w, values, more, error);
}

tess_status tess_fill_subtract(const tess_fill_map *map, int64_t y, int64_t x, int64_t h, int64_t w,
                               double *values, double *more, tess_error *error)
{
    if (!map->second)
        return TESS_OK;
    TESS_TRY(tess_raster_read(map->second, y, x, h, w, more, NULL, error));
    for (int64_t i = 0; i < h * w; i++)
        values[i] -= more[i];
    return TESS_OK;
}

/* Rows [0, h) and columns [0, w) of the window are in place; the others repeat the last ones. */
static void extend(tess_fill_window *window, int64_t h, int64_t w)
{
    const int64_t size = window->size;
    for (int64_t y = 0; y < size; y++)
        for (int64_t x = y < h ? w : 0; x < size; x++) {
            const int64_t at = y * size + x, from = tess_min_i64(y, h - 1) * size + tess_min_i64(x, w - 1);
            window->values[at] = window->values[from];
            window->voids[at] = window->voids[from];
        }
}

/* Moves rows of `w` to rows of `size`, from the last on, so that none is overwritten before it is moved. */
static void widen(uint8_t *rows, int64_t h, int64_t w, int64_t size)
{
    for (int64_t y = h; y-- > 0;)
        for (int64_t x = w; x-- > 0;)
            rows[y * size + x] = rows[y * w + x];
}

tess_status tess_fill_window_read(tess_fill_map *map, tess_fill_window *window, void *scratch,
                                  tess_error *error)
{
    const tess_fill_level *level = &map->levels[window->level];
    const int64_t size = window->size, h = tess_min_i64(size, level->height - window->y),
                  w = tess_min_i64(size, level->width - window->x);
    double *heights = scratch;
    if (window->level == 0)
        TESS_TRY(
            tess_fill_read(map, window->y, window->x, h, w, heights, heights + size * size, NULL, error));
    tess_bitmap_read(&level->voids, window->y, window->x, h, w, window->voids);
    widen(window->voids, h, w, size);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++) {
            const int64_t at = y * size + x;
            const double value = window->level == 0
                                     ? heights[y * w + x] - map->base
                                     : (double)level->values[(window->y + y) * level->width + window->x + x];
            window->values[at] = window->voids[at] ? 0 : (float)value;
        }
    extend(window, h, w);
    return TESS_OK;
}

/* Pixel i of a level is centred at (i + 0.5) / FACTOR - 0.5 of the next. */
static void place(int64_t at, int64_t size, int64_t *first, float *part)
{
    const double to = ((double)at + 0.5) / TESS_FILL_FACTOR - 0.5,
                 inside = fmin(fmax(to, 0), (double)(size - 1));
    *first = tess_min_i64((int64_t)inside, tess_max_i64(0, size - 2));
    *part = size > 1 ? (float)(inside - (double)*first) : 0;
}

void tess_fill_guess(const tess_fill_map *map, const tess_fill_window *window, float *guess)
{
    const tess_fill_level *coarse = &map->levels[window->level + 1];
    for (int64_t y = 0; y < window->size; y++) {
        int64_t row, column;
        float down, right;
        place(window->y + y, coarse->height, &row, &down);
        const float *above = coarse->values + row * coarse->width,
                    *below = above + (row + 1 < coarse->height ? coarse->width : 0);
        for (int64_t x = 0; x < window->size; x++) {
            place(window->x + x, coarse->width, &column, &right);
            const int64_t next = column + (column + 1 < coarse->width);
            const float upper = above[column] + right * (above[next] - above[column]),
                        lower = below[column] + right * (below[next] - below[column]);
            guess[y * window->size + x] = upper + down * (lower - upper);
        }
    }
}
