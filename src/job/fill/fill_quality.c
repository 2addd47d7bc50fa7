#define _GNU_SOURCE
#include "job/fill/fill_quality.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum { ROWS = 64, PARTS = 6 };

/* Rows [top - 1, top + ROWS + 1) of both maps; of a small map all rows. */
typedef struct room {
    double *read;
    float *result, *truth;
    uint8_t *wanted, *classes;
    void *scratch;
    tess_block block;
} room;

static bool is_whole(const tess_fill_map *map)
{
    return map->levels[0].height * map->levels[0].width <= TESS_FILL_WHOLE;
}

static size_t place(const tess_fill_map *map, size_t at[PARTS])
{
    const int64_t height = map->levels[0].height, width = map->levels[0].width;
    const bool whole = is_whole(map);
    const int64_t rows = whole ? height : tess_min_i64(height, ROWS + 2);
    const size_t pixels = (size_t)(rows * width), walk = whole ? tess_voids_walk_bytes(height, width) : 0,
                 similar = whole ? tess_terrain_similarity_bytes(height, width) : 0;
    const size_t sizes[PARTS] = {(size_t)(tess_min_i64(height, ROWS + 2) * width) * sizeof(double),
                                 pixels * sizeof(float),
                                 pixels * sizeof(float),
                                 pixels,
                                 whole ? pixels : 0,
                                 walk > similar ? walk : similar};
    size_t total = 0;
    for (int i = 0; i < PARTS; i++) {
        at[i] = total;
        total += (size_t)tess_round_up((int64_t)sizes[i], 64);
    }
    return total;
}

size_t tess_fill_compare_bytes(const tess_fill_map *map)
{
    size_t at[PARTS];
    return tess_block_granted(place(map, at));
}

static tess_status open_room(const tess_fill_map *map, tess_memory *memory, room *r, tess_error *error)
{
    size_t at[PARTS];
    TESS_TRY(tess_block_alloc(memory, &r->block, TESS_MEM_HOST, place(map, at), error));
    char *data = r->block.data;
    r->read = (double *)(void *)(data + at[0]);
    r->result = (float *)(void *)(data + at[1]);
    r->truth = (float *)(void *)(data + at[2]);
    r->wanted = (uint8_t *)data + at[3];
    r->classes = is_whole(map) ? (uint8_t *)data + at[4] : NULL;
    r->scratch = data + at[5];
    return TESS_OK;
}

/* Heights minus the map's base, so that fp32 keeps millimetres. */
static tess_status read_rows(const tess_fill_map *map, tess_raster_output *output, tess_raster *truth,
                             int64_t y, int64_t rows, room *r, int64_t to, tess_error *error)
{
    const int64_t width = map->levels[0].width;
    for (int turn = 0; turn < 2; turn++) {
        TESS_TRY(turn == 0 ? tess_raster_output_read(output, y, 0, rows, width, r->read, error)
                           : tess_raster_read(truth, y, 0, rows, width, r->read, NULL, error));
        float *values = (turn == 0 ? r->result : r->truth) + to * width;
        for (int64_t i = 0; i < rows * width; i++)
            values[i] = (float)(r->read[i] - map->base);
    }
    return TESS_OK;
}

/* The size of a pixel in metres: degrees are converted at the middle of the map. */
static void pixel_size(const tess_fill_map *map, double *height, double *width)
{
    const double metres = 6371000 * M_PI / 180;
    const tess_raster_info *info = tess_raster_describe(map->raster);
    const double *t = info->transform;
    *width = *height = 1;
    if (!info->has_transform)
        return;
    *width = hypot(t[1], t[4]);
    *height = hypot(t[2], t[5]);
    if (strncmp(info->crs, "GEOG", 4) == 0) {
        const double latitude = t[3] + t[4] * (double)info->width / 2 + t[5] * (double)info->height / 2;
        *height *= metres;
        *width *= metres * fmax(cos(latitude * M_PI / 180), 0.01);
    }
}

/* Rows [first, first + rows) of the map, which are in the room from row `at` on. */
static void add_rows(const tess_fill_map *map, const room *r, int64_t first, int64_t rows, int64_t at,
                     tess_terrain *terrain)
{
    const int64_t width = map->levels[0].width, height = map->levels[0].height;
    for (int64_t i = 0; i < rows; i++) {
        const int64_t here = (at + i) * width;
        const bool above = first + i > 0, below = first + i + 1 < height;
        tess_terrain_rows both[2];
        const float *const values[2] = {r->result + here, r->truth + here};
        for (int k = 0; k < 2; k++)
            both[k] = (tess_terrain_rows){above ? values[k] - width : NULL, values[k],
                                          below ? values[k] + width : NULL};
        tess_terrain_row(terrain, &both[0], &both[1], r->wanted + here,
                         r->classes ? r->classes + here : NULL);
    }
}

/* Strips with a row above and below. */
static tess_status compare_strips(const tess_fill_map *map, tess_raster_output *output, tess_raster *truth,
                                  tess_stop *stop, room *r, tess_terrain *terrain, tess_error *error)
{
    const tess_fill_level *l = &map->levels[0];
    for (int64_t y = 0; y < l->height; y += ROWS) {
        const int64_t rows = tess_min_i64(ROWS, l->height - y), from = tess_max_i64(0, y - 1),
                      end = tess_min_i64(l->height, y + rows + 1);
        if (tess_bitmap_count_window(&l->wanted, y, 0, rows, l->width) == 0)
            continue;
        TESS_TRY(tess_stop_check(stop, error));
        TESS_TRY(read_rows(map, output, truth, from, end - from, r, 0, error));
        tess_bitmap_read(&l->wanted, from, 0, end - from, l->width, r->wanted);
        add_rows(map, r, y, rows, y - from, terrain);
    }
    return TESS_OK;
}

static tess_status compare_whole(const tess_fill_map *map, tess_raster_output *output, tess_raster *truth,
                                 tess_stop *stop, room *r, tess_terrain *terrain, tess_fill_quality *quality,
                                 tess_error *error)
{
    const tess_fill_level *l = &map->levels[0];
    for (int64_t y = 0; y < l->height; y += ROWS) {
        TESS_TRY(tess_stop_check(stop, error));
        TESS_TRY(read_rows(map, output, truth, y, tess_min_i64(ROWS, l->height - y), r, y, error));
    }
    tess_bitmap_read(&l->wanted, 0, 0, l->height, l->width, r->wanted);
    tess_voids_classify(r->wanted, l->height, l->width, r->scratch, r->classes);
    add_rows(map, r, 0, l->height, 0, terrain);
    int64_t top = l->height, left = l->width, bottom = 0, right = 0;
    for (int64_t i = 0; i < l->height * l->width; i++)
        if (r->wanted[i]) {
            top = tess_min_i64(top, i / l->width), bottom = tess_max_i64(bottom, i / l->width + 1);
            left = tess_min_i64(left, i % l->width), right = tess_max_i64(right, i % l->width + 1);
        }
    quality->psnr = quality->ms_ssim = NAN;
    if (bottom > top)
        tess_terrain_similarity(&(tess_terrain_pair){r->result + top * l->width + left,
                                                     r->truth + top * l->width + left, bottom - top,
                                                     right - left, l->width, map->base},
                                r->scratch, &quality->psnr, &quality->ms_ssim);
    return TESS_OK;
}

tess_status tess_fill_compare(const tess_fill_map *map, tess_raster_output *output, tess_raster *truth,
                              tess_memory *memory, tess_stop *stop, tess_fill_quality *quality,
                              tess_error *error)
{
    room r = {0};
    tess_terrain terrain;
    double pixel_height, pixel_width;
    pixel_size(map, &pixel_height, &pixel_width);
    tess_terrain_begin(&terrain, map->levels[0].width, pixel_height, pixel_width);
    *quality = (tess_fill_quality){.given = true, .whole = is_whole(map)};
    tess_status status = open_room(map, memory, &r, error);
    if (status == TESS_OK)
        status = quality->whole ? compare_whole(map, output, truth, stop, &r, &terrain, quality, error)
                                : compare_strips(map, output, truth, stop, &r, &terrain, error);
    quality->all = tess_terrain_result(&terrain.all);
    for (int i = 0; i < TESS_VOID_CLASSES; i++)
        quality->classes[i] = tess_terrain_result(&terrain.classes[i]);
    tess_block_free(&r.block);
    return status;
}
