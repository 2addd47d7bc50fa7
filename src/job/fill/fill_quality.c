#include "job/fill/fill_quality.h"

#include <math.h>

#include "base/checked.h"
#include "base/mem.h"

enum { ROWS = 64 };

typedef struct sums {
    double square, absolute, plain, largest;
    int64_t pixels;
} sums;

static void add_rows(const uint8_t *wanted, const double *got, const double *truth, int64_t pixels, sums *s)
{
    for (int64_t i = 0; i < pixels; i++) {
        const double difference = got[i] - truth[i];
        if (!wanted[i] || !isfinite(truth[i]))
            continue;
        s->square += difference * difference;
        s->absolute += fabs(difference);
        s->plain += difference;
        s->largest = fmax(s->largest, fabs(difference));
        s->pixels++;
    }
}

static tess_status compare(const tess_fill_map *map, tess_raster_output *output, tess_raster *truth,
                           void *room, tess_stop *stop, sums *s, tess_error *error)
{
    const tess_fill_level *l = &map->levels[0];
    double *got = room, *right = got + ROWS * l->width;
    uint8_t *wanted = (uint8_t *)(right + ROWS * l->width);
    for (int64_t y = 0; y < l->height; y += ROWS) {
        const int64_t rows = tess_min_i64(ROWS, l->height - y);
        if (tess_bitmap_count_window(&l->wanted, y, 0, rows, l->width) == 0)
            continue;
        TESS_TRY(tess_stop_check(stop, error));
        TESS_TRY(tess_raster_output_read(output, y, 0, rows, l->width, got, error));
        TESS_TRY(tess_raster_read(truth, y, 0, rows, l->width, right, NULL, error));
        tess_bitmap_read(&l->wanted, y, 0, rows, l->width, wanted);
        add_rows(wanted, got, right, rows * l->width, s);
    }
    return TESS_OK;
}

static size_t room_bytes(const tess_fill_map *map)
{
    return (size_t)(ROWS * map->levels[0].width) * (2 * sizeof(double) + 1);
}

size_t tess_fill_compare_bytes(const tess_fill_map *map)
{
    return tess_block_granted(room_bytes(map));
}

tess_status tess_fill_compare(const tess_fill_map *map, tess_raster_output *output, tess_raster *truth,
                              tess_memory *memory, tess_stop *stop, tess_fill_quality *quality,
                              tess_error *error)
{
    tess_block block = {0};
    sums s = {0};
    tess_status status = tess_block_alloc(memory, &block, TESS_MEM_HOST, room_bytes(map), error);
    if (status == TESS_OK)
        status = compare(map, output, truth, block.data, stop, &s, error);
    const double count = (double)tess_max_i64(1, s.pixels);
    *quality = (tess_fill_quality){.pixels = s.pixels,
                                   .rmse = sqrt(s.square / count),
                                   .mae = s.absolute / count,
                                   .bias = s.plain / count,
                                   .largest = s.largest};
    tess_block_free(&block);
    return status;
}
