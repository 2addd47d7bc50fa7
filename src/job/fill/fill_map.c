#include "job/fill/fill_map.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { ROWS = 64 }; /* of the raster at a time; a multiple of TESS_FILL_FACTOR */

static const double MOST_HEIGHT = 1e20; /* in any unit */

/* Memory for passes over all rows: values and flags. */
typedef struct pass {
    double *values, *more;
    uint8_t *flags, *marks;
} pass;

static size_t pass_bytes(int64_t width)
{
    return (size_t)(ROWS * width) * (2 * sizeof(double) + 2);
}

static pass pass_of(const tess_fill_map *map)
{
    const int64_t pixels = ROWS * map->levels[0].width;
    double *values = map->rows.data;
    uint8_t *flags = (uint8_t *)(values + 2 * pixels);
    return (pass){values, values + pixels, flags, flags + pixels};
}

static tess_status read_rows(const tess_fill_map *map, const pass *p, int64_t y, int64_t rows,
                             tess_stop *stop, tess_error *error)
{
    TESS_TRY(tess_stop_check(stop, error));
    return tess_fill_read(map, y, 0, rows, map->levels[0].width, p->values, p->more, p->flags, error);
}

size_t tess_fill_map_bytes(int64_t height, int64_t width)
{
    const size_t bits = tess_bitmap_bytes(height, width);
    return bits > SIZE_MAX / 4 ? SIZE_MAX / 4 : tess_block_granted(2 * bits);
}

static tess_status alloc_level(tess_fill_map *map, int level, int64_t height, int64_t width,
                               tess_error *error)
{
    tess_fill_level *l = &map->levels[level];
    const size_t bits = tess_bitmap_bytes(height, width),
                 values = level > 0 ? (size_t)(height * width) * sizeof(float) : 0;
    if (bits == SIZE_MAX)
        return tess_fail(error, TESS_BAD_INPUT, "%lld x %lld pixels are too many", (long long)width,
                         (long long)height);
    TESS_TRY(tess_block_alloc(map->memory, &map->block[level], TESS_MEM_HOST, 2 * bits + values, error));
    char *data = map->block[level].data;
    l->height = height;
    l->width = width;
    tess_bitmap_init(&l->voids, height, width, data);
    tess_bitmap_init(&l->wanted, height, width, data + bits);
    l->values = level > 0 ? (float *)(void *)(data + 2 * bits) : NULL;
    map->count = level + 1;
    return TESS_OK;
}

/* Bits, range and counts of the raster. */
static tess_status scan_rows(tess_fill_map *map, bool zeros, tess_stop *stop, tess_error *error)
{
    tess_fill_level *l = &map->levels[0];
    const tess_raster_info *info = tess_raster_describe(map->raster);
    const pass p = pass_of(map);
    map->void_pixels = map->kept_pixels = map->valid_pixels = 0;
    map->low = INFINITY;
    map->high = -INFINITY;
    tess_zeros_begin(&map->look.zeros, info->dtype, l->height, l->width, 1, 1);
    for (int64_t y = 0; y < l->height; y += ROWS) {
        const int64_t rows = tess_min_i64(ROWS, l->height - y), pixels = rows * l->width;
        TESS_TRY(tess_stop_check(stop, error));
        TESS_TRY(tess_raster_read(map->raster, y, 0, rows, l->width, p.values, p.flags, error));
        if (zeros)
            tess_fill_count_zeros(&map->look.zeros, info, p.values, rows, p.more);
        TESS_TRY(tess_fill_subtract(map, y, 0, rows, l->width, p.values, p.more, error));
        for (int64_t i = 0; i < pixels; i++) {
            const bool known = p.flags[i] == TESS_PIXEL_VALID && isfinite(p.values[i]);
            p.marks[i] = !known;
            map->void_pixels += p.flags[i] == TESS_PIXEL_VOID;
            map->kept_pixels += p.flags[i] == TESS_PIXEL_KEPT;
            if (known) {
                map->low = fmin(map->low, p.values[i]);
                map->high = fmax(map->high, p.values[i]);
                map->valid_pixels++;
            }
            p.flags[i] = p.flags[i] == TESS_PIXEL_VOID;
        }
        tess_bitmap_write(&l->voids, y, 0, rows, l->width, p.marks);
        tess_bitmap_write(&l->wanted, y, 0, rows, l->width, p.flags);
        for (int64_t i = 0; map->second && i < pixels; i++)
            p.marks[i] = p.flags[i] && !isfinite(p.more[i]);
        if (map->second)
            tess_bitmap_write(&map->lost, y, 0, rows, l->width, p.marks);
    }
    return TESS_OK;
}

/* Reads all rows; again if marks are found that the file does not declare. */
static tess_status scan(tess_fill_map *map, bool declared_only, tess_stop *stop, tess_error *error)
{
    const tess_raster_info *info = tess_raster_describe(map->raster);
    const bool zeros = !info->mask_file && !declared_only;
    tess_void_watch *marks = &map->look.marks;
    tess_void_watch_begin(marks);
    tess_raster_watch(map->raster, marks);
    const tess_status status = scan_rows(map, zeros, stop, error);
    tess_raster_watch(map->raster, NULL);
    TESS_TRY(status);
    if (tess_void_watch_end(marks, &info->rule) && !declared_only) {
        tess_raster_add_marks(map->raster, marks);
        TESS_TRY(scan_rows(map, zeros, stop, error));
    }
    if (map->valid_pixels == 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         map->second ? "no pixel has a value in both maps: there is nothing to fill from"
                                     : "every pixel is void: there is nothing to fill from");
    const double farthest = fabs(map->low) > fabs(map->high) ? map->low : map->high;
    if (fabs(farthest) > MOST_HEIGHT)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "some pixels are %.9g, which is no height: give them the file's nodata value, or name "
            "all voids in a `mask`",
            farthest);
    const double middle = (map->low + map->high) / 2;
    map->base = map->high - map->low < 1 ? middle : round(middle);
    return TESS_OK;
}

static tess_status with_scratch(tess_fill_map *map, size_t bytes, tess_block *block, tess_error *error)
{
    return tess_block_alloc(map->memory, block, TESS_MEM_HOST, bytes, error);
}

/* Takes away what stays void: what touches the edge, and what is too far from a valid pixel. */
static tess_status select_wanted(tess_fill_map *map, const tess_fill_map_settings *settings,
                                 tess_error *error)
{
    tess_fill_level *l = &map->levels[0];
    tess_block block = {0};
    const size_t bits = tess_bitmap_bytes(l->height, l->width);
    const int64_t before = tess_bitmap_count(&l->wanted);
    if (settings->inner) {
        tess_bitmap outer;
        TESS_TRY(with_scratch(map, bits + tess_voids_outer_bytes(l->height, l->width), &block, error));
        tess_bitmap_init(&outer, l->height, l->width, block.data);
        tess_voids_outer(&l->wanted, &outer,
                         (char *)block.data + bits); /* gaps of a second map join no voids */
        tess_bitmap_subtract(&l->wanted, &outer);
        tess_block_free(&block);
    }
    map->outer_pixels = before - tess_bitmap_count(&l->wanted);
    if (map->second)
        tess_bitmap_subtract(&l->wanted, &map->lost);
    const int64_t inner = tess_bitmap_count(&l->wanted);
    map->second_pixels = before - map->outer_pixels - inner;
    if (settings->most_distance > 0) {
        TESS_TRY(with_scratch(map, tess_voids_distance_bytes(l->height, l->width), &block, error));
        tess_voids_limit(&l->voids, settings->most_distance, &l->wanted, block.data);
        tess_block_free(&block);
    }
    map->far_pixels = inner - tess_bitmap_count(&l->wanted);
    TESS_TRY(with_scratch(map, tess_voids_summary_bytes(l->height, l->width), &block, error));
    tess_voids_summary(&l->wanted, block.data, NULL, NULL, &map->summary);
    tess_block_free(&block);
    return TESS_OK;
}

/* One row of pixels of a level from up to TESS_FILL_FACTOR rows below it. A pixel has a value where at least half of
 * what it covers has one. */
static void reduce_row(tess_fill_map *map, int level, int64_t y, const double *rows, const uint8_t *voids,
                       const uint8_t *wanted, int64_t count)
{
    tess_fill_level *to = &map->levels[level];
    const int64_t width = map->levels[level - 1].width;
    for (int64_t x = 0; x < to->width; x++) {
        const int64_t from = x * TESS_FILL_FACTOR, end = tess_min_i64(width, from + TESS_FILL_FACTOR);
        double sum = 0;
        int64_t valid = 0, asked = 0;
        for (int64_t i = 0; i < count; i++)
            for (int64_t k = from; k < end; k++) {
                const int64_t at = i * width + k;
                asked += wanted[at];
                valid += !voids[at];
                sum += voids[at] ? 0 : rows[at];
            }
        const bool empty = 2 * valid < count * (end - from);
        to->values[y * to->width + x] = empty ? 0 : (float)(sum / (double)valid);
        if (empty)
            tess_bitmap_set(&to->voids, y, x);
        if (empty && asked > 0)
            tess_bitmap_set(&to->wanted, y, x);
    }
}

static tess_status reduce(tess_fill_map *map, int level, tess_stop *stop, tess_error *error)
{
    const tess_fill_level *from = &map->levels[level - 1];
    const pass p = pass_of(map);
    for (int64_t y = 0; y < from->height; y += ROWS) {
        const int64_t rows = tess_min_i64(ROWS, from->height - y), pixels = rows * from->width;
        if (level == 1)
            TESS_TRY(read_rows(map, &p, y, rows, stop, error));
        for (int64_t i = 0; i < pixels; i++)
            p.values[i] = level == 1 ? p.values[i] - map->base : (double)from->values[y * from->width + i];
        tess_bitmap_read(&from->voids, y, 0, rows, from->width, p.marks);
        tess_bitmap_read(&from->wanted, y, 0, rows, from->width, p.flags);
        for (int64_t i = 0; i < rows; i += TESS_FILL_FACTOR)
            reduce_row(map, level, (y + i) / TESS_FILL_FACTOR, p.values + i * from->width,
                       p.marks + i * from->width, p.flags + i * from->width,
                       tess_min_i64(TESS_FILL_FACTOR, rows - i));
    }
    return TESS_OK;
}

static bool beside_wanted(const tess_fill_level *l, int64_t y, int64_t x)
{
    const int64_t top = tess_max_i64(0, y - 1), left = tess_max_i64(0, x - 1),
                  rows = tess_min_i64(l->height, y + 2) - top, columns = tess_min_i64(l->width, x + 2) - left;
    return tess_bitmap_count_window(&l->wanted, top, left, rows, columns) > 0;
}

/* Between pixels of a coarser map the next one interpolates, so voids beside a wanted pixel are wanted, too. The value of
 * a void, which is 0, marks them until all are found. */
static void widen_wanted(tess_fill_level *l)
{
    const float marked = 1;
    for (int turn = 0; turn < 2; turn++)
        for (int64_t y = 0; y < l->height; y++)
            for (int64_t x = tess_bitmap_find(&l->voids, y, 0, true); x < l->width;
                 x = tess_bitmap_find(&l->voids, y, x + 1, true)) {
                float *value = &l->values[y * l->width + x];
                if (turn == 0 && beside_wanted(l, y, x))
                    *value = marked;
                if (turn == 1 && *value == marked)
                    tess_bitmap_set(&l->wanted, y, x);
                *value = turn == 0 ? *value : 0;
            }
}

static tess_status make_levels(tess_fill_map *map, int64_t tile, tess_stop *stop, tess_error *error)
{
    double width = map->summary.count > 0 ? map->summary.widest.width : 0;
    for (int level = 1; level < TESS_FILL_LEVELS && width > (double)tile / 2; level++) {
        const tess_fill_level *from = &map->levels[level - 1];
        if (from->height <= tile / 2 && from->width <= tile / 2)
            break;
        TESS_TRY(alloc_level(map, level, tess_ceil_div(from->height, TESS_FILL_FACTOR),
                             tess_ceil_div(from->width, TESS_FILL_FACTOR), error));
        TESS_TRY(reduce(map, level, stop, error));
        widen_wanted(&map->levels[level]);
        width /= TESS_FILL_FACTOR;
    }
    return TESS_OK;
}

tess_status tess_fill_map_open(tess_fill_map *map, tess_raster *raster, tess_raster *second,
                               tess_memory *memory, const tess_fill_map_settings *settings, tess_stop *stop,
                               tess_error *error)
{
    const tess_raster_info *info = tess_raster_describe(raster);
    memset(map, 0, sizeof *map);
    map->raster = raster;
    map->second = second;
    map->memory = memory;
    tess_status status = alloc_level(map, 0, info->height, info->width, error);
    if (status == TESS_OK)
        status = tess_block_alloc(memory, &map->rows, TESS_MEM_HOST, pass_bytes(info->width), error);
    if (status == TESS_OK && second) {
        status = tess_block_alloc(memory, &map->lost_block, TESS_MEM_HOST,
                                  tess_bitmap_bytes(info->height, info->width), error);
        if (status == TESS_OK)
            tess_bitmap_init(&map->lost, info->height, info->width, map->lost_block.data);
    }
    if (status == TESS_OK)
        status = scan(map, settings->declared_only, stop, error);
    if (status == TESS_OK)
        status = select_wanted(map, settings, error);
    if (status == TESS_OK)
        status = make_levels(map, settings->tile, stop, error);
    tess_block_free(&map->rows);
    tess_block_free(&map->lost_block);
    if (status != TESS_OK)
        tess_fill_map_close(map);
    return status;
}

void tess_fill_map_close(tess_fill_map *map)
{
    tess_block_free(&map->rows);
    tess_block_free(&map->lost_block);
    for (int i = 0; i < TESS_FILL_LEVELS; i++)
        tess_block_free(&map->block[i]);
}
