#include "io/cube_marks.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "io/cube_impl.h"

enum { LEAST_BANDS = 3, LEAST_LINE = 8, LEAST_BORDER = 3, LEAST_UNITS = 3 };
enum { BUDGET = 64 << 20, PIECE = 1 << 20 }; /* bytes that are looked at; at once */
enum { NONE = -1, UNSEEN = -2 };

static const double SHARE = 0.01;  /* of the pixels, or of those at the border */
static const double SPARSE = 0.25; /* of the samples of other pixels: zeros are values */

typedef struct looking {
    tess_cube *cube;
    tess_cube_marks *marks;
    int64_t border[TESS_CUBE_KINDS], borders; /* pixels at the border, of each kind and of all */
    int64_t others, zeros; /* pixels of no kind; samples of theirs that are 0, in three bands */
    int64_t rows;          /* of this image, so far */
    int8_t *column;        /* the kind of all its pixels so far */
    uint8_t *keep;
    char *samples;
    int64_t piece; /* rows at once */
} looking;

static double sample_at(tess_dtype dtype, const void *samples, int64_t at)
{
    switch (dtype) {
    case TESS_U8:
        return ((const uint8_t *)samples)[at];
    case TESS_U16:
        return ((const uint16_t *)samples)[at];
    case TESS_I16:
        return ((const int16_t *)samples)[at];
    case TESS_U32:
        return ((const uint32_t *)samples)[at];
    case TESS_I32:
        return ((const int32_t *)samples)[at];
    case TESS_F64:
        return ((const double *)samples)[at];
    default:
        return (double)((const float *)samples)[at];
    }
}

/* The kind of a pixel; NONE: it is of none. */
static int kind_of(const tess_cube_info *info, const char *pixel)
{
    const double first = sample_at(info->dtype, pixel, 0);
    const int kind = first == 0 ? TESS_CUBE_ZERO : tess_void_usual(first);
    const size_t size = tess_dtype_size(info->dtype);
    if (kind < 0 || info->bands < LEAST_BANDS)
        return NONE;
    return memcmp(pixel, pixel + size, (size_t)(info->bands - 1) * size) == 0 ? kind : NONE;
}

/* Marks that no spectrum can have. */
static bool is_certain(int kind)
{
    return kind < TESS_VOID_TOPS || kind == TESS_CUBE_ABSURD;
}

static void count_zeros(looking *l, const char *pixel)
{
    const tess_cube_info *info = &l->cube->info;
    l->others++;
    for (int i = 0; i < 3; i++)
        l->zeros += sample_at(info->dtype, pixel, (info->bands - 1) * i / 2) == 0;
}

static void look_row(looking *l, int64_t row, const char *samples, const uint8_t *keep)
{
    const tess_cube_info *info = &l->cube->info;
    tess_cube_marks *m = l->marks;
    const size_t bytes = (size_t)info->bands * tess_dtype_size(info->dtype);
    int of_row = UNSEEN;
    int64_t seen = 0;
    for (int64_t x = 0; x < info->width; x++) {
        const char *pixel = samples + (size_t)x * bytes;
        const int kind = keep[x] ? kind_of(info, pixel) : NONE;
        const double value = kind < 0 ? 0 : sample_at(info->dtype, pixel, 0);
        if (!keep[x] || (kind >= 0 && info->has_nodata && value == info->nodata))
            continue;
        const bool border = row == 0 || row == info->height - 1 || x == 0 || x == info->width - 1;
        m->looked++, seen++;
        l->borders += border;
        if (kind >= 0) {
            m->count[kind]++;
            m->value[kind] = value;
            l->border[kind] += border;
        } else
            count_zeros(l, pixel);
        of_row = of_row == UNSEEN || of_row == kind ? kind : NONE;
        l->column[x] = (int8_t)(l->column[x] == UNSEEN || l->column[x] == kind ? kind : NONE);
    }
    if (of_row >= 0 && seen >= LEAST_LINE)
        m->evident[of_row] = true;
    l->rows++;
}

static void end_image(looking *l)
{
    for (int64_t x = 0; x < l->cube->info.width; x++) {
        if (l->column[x] >= 0 && l->rows >= LEAST_LINE)
            l->marks->evident[l->column[x]] = true;
        l->column[x] = UNSEEN;
    }
    l->rows = 0;
}

static void conclude(looking *l)
{
    tess_cube_marks *m = l->marks;
    m->sparse = (double)l->zeros > SPARSE * 3 * (double)l->others;
    for (int k = 0; k < TESS_CUBE_KINDS; k++) {
        const bool many = (double)m->count[k] >= SHARE * (double)m->looked,
                   outside =
                       l->border[k] >= LEAST_BORDER && (double)l->border[k] >= SHARE * (double)l->borders;
        m->evident[k] = m->count[k] > 0 && (is_certain(k) || ((m->evident[k] || many || outside) &&
                                                              l->cube->info.bands >= TESS_CUBE_MANY_BANDS &&
                                                              !(k == TESS_CUBE_ZERO && m->sparse)));
    }
}

static tess_status look_rows(looking *l, int64_t image, int64_t first, int64_t rows, tess_error *error)
{
    const tess_cube_info *info = &l->cube->info;
    while (rows > 0) {
        const int64_t some = tess_min_i64(rows, l->piece);
        TESS_TRY(tess_cube_read(l->cube, image, first, some, l->samples, error));
        memset(l->keep, 1, (size_t)(some * info->width));
        TESS_TRY(tess_cube_missing(l->cube, NULL, first, some, l->samples, l->keep, error));
        for (int64_t r = 0; r < some; r++)
            look_row(l, first + r, l->samples + tess_cube_bytes(info, r), l->keep + r * info->width);
        first += some;
        rows -= some;
    }
    return TESS_OK;
}

static tess_status look_all(looking *l, tess_error *error)
{
    const tess_cube_info *info = &l->cube->info;
    const int64_t unit = tess_min_i64(tess_max_i64(info->block_rows, l->piece), info->height),
                  units = tess_ceil_div(info->height, unit), all = units * info->count,
                  affordable = (int64_t)(BUDGET / tess_max_i64((int64_t)tess_cube_bytes(info, unit), 1)),
                  count = tess_min_i64(all, tess_max_i64(affordable, LEAST_UNITS));
    int64_t image = 0;
    for (int64_t i = 0; i < count; i++) {
        const int64_t u = count == all ? i : i * (all - 1) / (count - 1), first = u % units * unit;
        if (u / units != image)
            end_image(l);
        image = u / units;
        TESS_TRY(look_rows(l, image, first, tess_min_i64(unit, info->height - first), error));
    }
    end_image(l);
    l->marks->part = count < all;
    return TESS_OK;
}

tess_status tess_cube_look(tess_cube *cube, tess_cube_marks *marks, tess_error *error)
{
    const tess_cube_info *info = &cube->info;
    tess_block block = {0};
    *marks = (tess_cube_marks){0};
    if (info->bands < LEAST_BANDS)
        return TESS_OK;
    looking l = {.cube = cube, .marks = marks};
    l.piece = tess_min_i64(tess_max_i64(PIECE / (int64_t)tess_cube_bytes(info, 1), 1), info->height);
    const size_t samples = tess_cube_bytes(info, l.piece), pixels = (size_t)(l.piece * info->width);
    TESS_TRY(
        tess_block_alloc(cube->memory, &block, TESS_MEM_HOST, samples + pixels + (size_t)info->width, error));
    l.samples = block.data;
    l.keep = (uint8_t *)l.samples + samples;
    l.column = (int8_t *)l.keep + pixels;
    memset(l.column, UNSEEN, (size_t)info->width);
    const tess_status status = look_all(&l, error);
    tess_block_free(&block);
    conclude(&l);
    return status;
}

void tess_cube_marks_settle(tess_cube_list *list)
{
    for (int k = 0; k < TESS_CUBE_KINDS; k++) {
        int64_t count = 0, looked = 0;
        for (int64_t i = 0; i < list->count; i++) {
            count += list->entries[i].marks.count[k];
            looked += list->entries[i].marks.looked;
        }
        for (int64_t i = 0; i < list->count; i++) {
            tess_cube_marks *m = &list->entries[i].marks;
            m->missing[k] = m->evident[k] && (is_certain(k) || count < looked);
            m->any = m->any || m->missing[k];
        }
    }
}

/* 0 for pixels that the mask of the file hides in any band. */
static tess_status apply_mask(tess_cube *cube, int64_t first, int64_t rows, const char *samples,
                              uint8_t *keep, tess_error *error)
{
    const tess_cube_info *info = &cube->info;
    const int64_t bands = info->bands;
    const size_t bytes = (size_t)(info->width * bands);
    if (!cube->valid.data)
        TESS_TRY(tess_block_alloc(cube->memory, &cube->valid, TESS_MEM_HOST, bytes, error));
    const unsigned char *valid = cube->valid.data;
    for (int64_t r = 0; r < rows; r++) {
        TESS_TRY(cube->reader->format->valid(cube->reader->state, first + r, 1,
                                             samples + tess_cube_bytes(info, r), cube->valid.data, error));
        for (int64_t x = 0; x < info->width; x++)
            keep[r * info->width + x] &= memchr(valid + x * bands, 0, (size_t)bands) == NULL;
    }
    return TESS_OK;
}

static bool has_sample(const tess_cube_info *info, const char *pixel, double value)
{
    bool found = false;
    for (int b = 0; b < info->bands && !found; b++)
        found = sample_at(info->dtype, pixel, b) == value;
    return found;
}

tess_status tess_cube_missing(tess_cube *cube, const tess_cube_marks *marks, int64_t first, int64_t rows,
                              const void *samples, uint8_t *keep, tess_error *error)
{
    const tess_cube_info *info = &cube->info;
    const size_t bytes = (size_t)info->bands * tess_dtype_size(info->dtype);
    const char *pixel = samples;
    if (info->masked) {
        tess_cube_lock();
        const tess_status status = apply_mask(cube, first, rows, samples, keep, error);
        tess_cube_unlock();
        if (status != TESS_OK)
            return tess_fail_prefix(error, status, cube->path);
    }
    const double given = info->dtype == TESS_F32 ? (double)(float)cube->nodata : cube->nodata;
    for (int64_t p = 0; p < rows * info->width && marks && marks->any; p++) {
        const int kind = kind_of(info, pixel + (size_t)p * bytes);
        keep[p] &= kind < 0 || !marks->missing[kind];
    }
    for (int64_t p = 0; p < rows * info->width && cube->nodata_given; p++)
        keep[p] &= !has_sample(info, pixel + (size_t)p * bytes, given);
    return TESS_OK;
}
