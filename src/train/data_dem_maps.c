#include "train/data_dem_maps.h"

#include <pthread.h>
#include <string.h>

#include "base/checked.h"
#include "io/raster.h"

enum { STRIP_ROWS = 64, ALIGNMENT = 64 };
/* Each part of a file is read once or in small windows, so that GDAL needs no cache but for the block in work. */
static const tess_raster_settings plain = {.cache = 1};

struct tess_dem_maps {
    tess_memory *memory;
    int64_t count, widest;
    tess_dem_map *maps;
    size_t kept_bytes, held;
    tess_block block;      /* the kept maps, then a strip of doubles */
    pthread_mutex_t mutex; /* one thread reads files at a time: GDAL would make them wait anyway */
};

static tess_status describe(const tess_dem_maps *m, tess_dem_map *map, tess_error *error)
{
    tess_raster *raster = NULL;
    TESS_TRY(tess_raster_open(m->memory, map->path, &plain, &raster, error));
    const tess_raster_info *info = tess_raster_describe(raster);
    map->height = info->height;
    map->width = info->width;
    map->held = info->held_bytes;
    tess_raster_close(raster);
    size_t bytes;
    if (!tess_mul_size((size_t)map->height, (size_t)map->width, &bytes) ||
        !tess_mul_size(bytes, sizeof(float), &bytes))
        return tess_fail(error, TESS_BAD_INPUT, "%s: is too large", map->path);
    return TESS_OK;
}

static size_t strip_bytes(const tess_dem_maps *m)
{
    return (size_t)(STRIP_ROWS * m->widest) * sizeof(double);
}

/* Chooses the maps that are kept, and sums up sizes. */
static void place(tess_dem_maps *m, size_t budget)
{
    for (int64_t i = 0; i < m->count; i++) {
        tess_dem_map *map = &m->maps[i];
        const size_t bytes =
            tess_align_size((size_t)map->height * (size_t)map->width * sizeof(float), ALIGNMENT);
        if (m->kept_bytes + bytes <= budget) {
            map->kept = true;
            map->at = m->kept_bytes;
            m->kept_bytes += bytes;
        }
        m->widest = tess_max_i64(m->widest, map->width);
        m->held = map->held > m->held ? map->held : m->held;
    }
}

tess_status tess_dem_maps_open(const tess_images_settings *s, tess_dem_maps **out, tess_error *error)
{
    *out = NULL;
    tess_file_list list;
    TESS_TRY(tess_file_list_make(s, &list, error));
    tess_dem_maps *m = tess_small_alloc(1, sizeof *m);
    tess_dem_map *maps = tess_small_alloc((size_t)list.count, sizeof *maps);
    if (!m || !maps) {
        tess_small_free(m);
        tess_small_free(maps);
        tess_file_list_free(&list);
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of elevation maps");
    }
    *m = (tess_dem_maps){.memory = s->memory, .maps = maps, .count = list.count};
    pthread_mutex_init(&m->mutex, NULL);
    for (int64_t i = 0; i < list.count; i++)
        maps[i].path = list.paths[i]; /* now owned by the map */
    list.count = 0;
    tess_file_list_free(&list);
    tess_status status = TESS_OK;
    for (int64_t i = 0; i < m->count && status == TESS_OK; i++)
        status = describe(m, &maps[i], error);
    if (status != TESS_OK) {
        tess_dem_maps_close(m);
        return status;
    }
    place(m, s->budget);
    *out = m;
    return TESS_OK;
}

void tess_dem_maps_close(tess_dem_maps *m)
{
    if (!m)
        return;
    for (int64_t i = 0; i < m->count; i++)
        tess_small_free(m->maps[i].path);
    tess_small_free(m->maps);
    tess_block_free(&m->block);
    pthread_mutex_destroy(&m->mutex);
    tess_small_free(m);
}

int64_t tess_dem_maps_count(const tess_dem_maps *m)
{
    return m->count;
}

const tess_dem_map *tess_dem_maps_at(const tess_dem_maps *m, int64_t index)
{
    return &m->maps[index];
}

size_t tess_dem_maps_bytes(const tess_dem_maps *m)
{
    return tess_block_granted(m->kept_bytes + strip_bytes(m)) + m->held;
}

tess_status tess_dem_maps_begin(tess_dem_maps *m, tess_error *error)
{
    if (m->block.data)
        return TESS_OK;
    return tess_block_alloc(m->memory, &m->block, TESS_MEM_HOST, m->kept_bytes + strip_bytes(m), error);
}

/* With the mutex: reads a rectangle from the file. */
static tess_status read_file(tess_dem_maps *m, const tess_dem_map *map, tess_rect rect, float *to,
                             tess_error *error)
{
    tess_raster *raster = NULL;
    double *strip = (double *)(void *)((char *)m->block.data + m->kept_bytes);
    TESS_TRY(tess_raster_open(m->memory, map->path, &plain, &raster, error));
    const tess_raster_info *info = tess_raster_describe(raster);
    tess_status status = info->height == map->height && info->width == map->width
                             ? TESS_OK
                             : tess_fail(error, TESS_BAD_INPUT, "%s: changed its size", map->path);
    for (int64_t y = 0; y < rect.height && status == TESS_OK; y += STRIP_ROWS) {
        const int64_t rows = tess_min_i64(STRIP_ROWS, rect.height - y);
        status = tess_raster_read(raster, rect.y + y, rect.x, rows, rect.width, strip, NULL, error);
        for (int64_t i = 0; i < rows * rect.width && status == TESS_OK; i++)
            to[y * rect.width + i] = (float)strip[i];
    }
    tess_raster_close(raster);
    return status;
}

tess_status tess_dem_maps_read(tess_dem_maps *m, int64_t index, tess_rect rect, float *to, tess_error *error)
{
    tess_dem_map *map = &m->maps[index];
    float *all = (float *)(void *)((char *)m->block.data + map->at);
    tess_status status = TESS_OK;
    pthread_mutex_lock(&m->mutex);
    if (!map->kept) {
        status = read_file(m, map, rect, to, error);
    } else if (!map->loaded) {
        status = read_file(m, map, (tess_rect){0, 0, map->height, map->width}, all, error);
        map->loaded = status == TESS_OK;
    }
    pthread_mutex_unlock(&m->mutex);
    for (int64_t y = 0; map->kept && status == TESS_OK && y < rect.height; y++)
        memcpy(to + y * rect.width, all + (rect.y + y) * map->width + rect.x,
               (size_t)rect.width * sizeof *to);
    return status;
}
