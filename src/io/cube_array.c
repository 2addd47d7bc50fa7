/* cube_array.c: rows of a dense array in a file, whatever the order of its axes.
 *
 * Seen from the rows, the axes of an array are in two groups: those outside the rows (the bands of BSQ) and those
 * inside (columns and bands of BIP and BIL). For each place of the outer ones, a number of rows is one contiguous run
 * of the file. The runs of a piece of rows are read one after another into `piece`, which then has the file's order
 * with fewer rows, and its samples go to the caller's order from there. BIP needs no piece.
 *
 * The runs of BSQ are far apart, so a piece is large enough for runs of about 64 KiB, within 16 MiB. It is always read whole,
 * and kept: whoever reads row by row, or blocks that are no multiple of it, gets the same runs. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/cube_impl.h"

enum { RUN = 64 << 10, PIECE_LEAST = 1 << 20, PIECE_MOST = 16 << 20, DIRECT = 4 << 20, TILE = 128 };

/* The sizes of the axes in the file's order, and their steps in samples. */
typedef struct axes {
    int rank;
    int64_t size[4], step[4];
    int row;       /* which axis */
    int64_t outer; /* runs of one image */
} axes;

static axes axes_of(const tess_cube_info *info, int64_t rows)
{
    axes a = {.rank = (int)strlen(info->stored), .outer = 1};
    int64_t step = 1;
    for (int i = a.rank - 1; i >= 0; i--) {
        const char axis = info->stored[i];
        a.size[i] = axis == 'B' ? info->count : axis == 'H' ? rows : axis == 'W' ? info->width : info->bands;
        a.step[i] = step;
        step *= a.size[i];
        if (axis == 'H')
            a.row = i;
    }
    for (int i = 0; i < a.row; i++)
        a.outer *= info->stored[i] == 'B' ? 1 : a.size[i];
    return a;
}

static int64_t step_of(const axes *a, const char *order, char axis)
{
    const char *at = strchr(order, axis);
    return at ? a->step[at - order] : 0;
}

static bool is_direct(const tess_cube_info *info)
{
    const char *order = info->stored + (info->stored[0] == 'B');
    return strcmp(order, "HWC") == 0 || (strcmp(order, "HW") == 0);
}

/* Fails on sizes whose product is no number of bytes. */
static tess_status count_bytes(const tess_cube *cube, int64_t offset, int64_t *bytes, tess_error *error)
{
    const tess_cube_info *info = &cube->info;
    *bytes = cube->array.sample_bytes;
    if (info->count > 0 && info->height > 0 && info->width > 0 && info->bands > 0 && offset >= 0 &&
        tess_mul_i64(*bytes, info->bands, bytes) && tess_mul_i64(*bytes, info->width, bytes) &&
        tess_mul_i64(*bytes, info->height, bytes) && tess_mul_i64(*bytes, info->count, bytes) &&
        tess_add_i64(*bytes, offset, bytes))
        return TESS_OK;
    return tess_fail(error, TESS_BAD_INPUT, "promises an impossible size of %lld x %lld x %d",
                     (long long)info->height, (long long)info->width, info->bands);
}

static void choose_piece(tess_cube *cube)
{
    tess_cube_info *info = &cube->info;
    const int64_t row = (int64_t)cube->array.sample_bytes * info->bands * info->width;
    const axes a = axes_of(info, info->height);
    int64_t wanted = DIRECT;
    if (!is_direct(info))
        wanted = a.outer == 1 ? PIECE_LEAST
                              : tess_max_i64(tess_min_i64(a.outer, PIECE_MOST / RUN) * RUN, PIECE_LEAST);
    const int64_t rows = tess_min_i64(tess_max_i64(wanted / row, 1), info->height);
    cube->array.piece_rows = rows;
    info->block_rows = rows;
    info->held_bytes = is_direct(info) ? 0 : tess_block_granted((size_t)(rows * row));
}

tess_status tess_cube_array_open(tess_cube *cube, int64_t offset, bool swapped, tess_error *error)
{
    tess_cube_array *array = &cube->array;
    const tess_cube_info *info = &cube->info;
    int64_t bytes = 0;
    struct stat about;
    array->offset = offset;
    array->swapped = swapped;
    TESS_TRY(count_bytes(cube, offset, &bytes, error));
    array->file = open(cube->path, O_RDONLY | O_CLOEXEC);
    if (array->file < 0 || fstat(array->file, &about) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading (%s)", strerror(errno));
    if (about.st_size != bytes)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "its header says %lld x %lld x %d samples of %s after %lld bytes, which are %lld bytes, but "
            "the file has %lld; correct the header or copy the file again",
            (long long)info->height, (long long)info->width, info->bands, tess_dtype_word(info->dtype),
            (long long)offset, (long long)bytes, (long long)about.st_size);
    choose_piece(cube);
    return TESS_OK;
}

static tess_status fetch(const tess_cube *cube, int64_t at, char *to, int64_t bytes, tess_error *error)
{
    while (bytes > 0) {
        errno = 0;
        const ssize_t got = pread(cube->array.file, to, (size_t)bytes, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return tess_fail(error, TESS_IO_FAILED, "cannot be read at byte %lld (%s)", (long long)at,
                             got < 0 ? strerror(errno) : "the file became shorter");
        at += got;
        to += got;
        bytes -= got;
    }
    return TESS_OK;
}

/* Where run `i` of the rows from `first` on begins. */
static int64_t run_at(const tess_cube *cube, const axes *whole, int64_t image, int64_t first, int64_t i)
{
    int64_t sample = image * step_of(whole, cube->info.stored, 'B') + first * whole->step[whole->row];
    for (int axis = whole->row - 1; axis >= 0 && cube->info.stored[axis] != 'B'; axis--) {
        sample += i % whole->size[axis] * whole->step[axis];
        i /= whole->size[axis];
    }
    return cube->array.offset + sample * cube->array.sample_bytes;
}

/* Reads some rows, in the file's order of axes. */
static tess_status read_piece(const tess_cube *cube, int64_t image, int64_t first, int64_t rows, char *to,
                              tess_error *error)
{
    const axes whole = axes_of(&cube->info, cube->info.height);
    int64_t runs = whole.outer, run = rows * whole.step[whole.row] * cube->array.sample_bytes;
    if (rows == cube->info.height) { /* they follow each other */
        run *= runs;
        runs = 1;
    }
    for (int64_t i = 0; i < runs; i++, to += run)
        TESS_TRY(fetch(cube, run_at(cube, &whole, image, first, i), to, run, error));
    return TESS_OK;
}

/* Samples of one row, at these steps, to (columns, bands). A tile of the caller's pixels stays in the first cache while
 * the bands go through it; four bands at a time make one store of four neighbours. */
#define SPREAD(name, type)                                                                                   \
    static void name(const type *restrict from, int64_t column, int64_t band, int64_t columns,               \
                     int64_t bands, type *restrict to)                                                       \
    {                                                                                                        \
        for (int64_t x = 0; x < columns; x += TILE) {                                                        \
            const int64_t end = x + TILE < columns ? x + TILE : columns;                                     \
            int64_t b = 0;                                                                                   \
            for (; b + 4 <= bands; b += 4) {                                                                 \
                const type *f0 = from + b * band, *f1 = f0 + band, *f2 = f1 + band, *f3 = f2 + band;         \
                for (int64_t i = x; i < end; i++) {                                                          \
                    type *pixel = to + i * bands + b;                                                        \
                    const type four[4] = {f0[i * column], f1[i * column], f2[i * column], f3[i * column]};   \
                    memcpy(pixel, four, sizeof four);                                                        \
                }                                                                                            \
            }                                                                                                \
            for (; b < bands; b++)                                                                           \
                for (int64_t i = x; i < end; i++)                                                            \
                    to[i * bands + b] = from[b * band + i * column];                                         \
        }                                                                                                    \
    }

SPREAD(spread_1, uint8_t)
SPREAD(spread_2, uint16_t)
SPREAD(spread_4, uint32_t)
SPREAD(spread_8, uint64_t)

static void spread(const char *from, int size, int64_t column, int64_t band, int64_t columns, int64_t bands,
                   char *to)
{
    switch (size) {
    case 1:
        spread_1((const uint8_t *)from, column, band, columns, bands, (uint8_t *)to);
        break;
    case 2:
        spread_2((const uint16_t *)(const void *)from, column, band, columns, bands, (uint16_t *)(void *)to);
        break;
    case 4:
        spread_4((const uint32_t *)(const void *)from, column, band, columns, bands, (uint32_t *)(void *)to);
        break;
    default:
        spread_8((const uint64_t *)(const void *)from, column, band, columns, bands, (uint64_t *)(void *)to);
    }
}

/* Makes the piece hold the row. */
static tess_status hold_row(tess_cube *cube, int64_t image, int64_t row, tess_error *error)
{
    tess_cube_array *array = &cube->array;
    const int64_t rows = tess_min_i64(array->piece_rows, cube->info.height - row);
    if (array->piece_image == image && row >= array->piece_first &&
        row < array->piece_first + array->piece_held)
        return TESS_OK;
    array->piece_held = 0;
    TESS_TRY(read_piece(cube, image, row, rows, array->piece.data, error));
    array->piece_image = image;
    array->piece_first = row;
    array->piece_held = rows;
    return TESS_OK;
}

tess_status tess_cube_array_read(tess_cube *cube, int64_t image, int64_t first, int64_t rows, char *samples,
                                 tess_error *error)
{
    tess_cube_array *array = &cube->array;
    const tess_cube_info *info = &cube->info;
    const int size = array->sample_bytes;
    const int64_t row = info->width * info->bands;
    const bool direct = is_direct(info);
    if (!direct && !array->piece.data)
        TESS_TRY(tess_block_alloc(cube->memory, &array->piece, TESS_MEM_HOST,
                                  (size_t)(array->piece_rows * row * size), error));
    while (rows > 0) {
        int64_t some = tess_min_i64(rows, array->piece_rows);
        TESS_TRY(tess_stop_check(cube->stop, error));
        TESS_TRY(direct ? read_piece(cube, image, first, some, samples, error)
                        : hold_row(cube, image, first, error));
        if (!direct)
            some = tess_min_i64(rows, array->piece_first + array->piece_held - first);
        const axes a = axes_of(info, array->piece_held);
        const char *from =
            (const char *)array->piece.data + (first - array->piece_first) * a.step[a.row] * size;
        for (int64_t r = 0; !direct && r < some; r++)
            spread(from + r * a.step[a.row] * size, size, step_of(&a, info->stored, 'W'),
                   step_of(&a, info->stored, 'C'), info->width, info->bands, samples + r * row * size);
        if (array->swapped)
            tess_swap_samples(samples, some * row, size);
        samples += some * row * size;
        first += some;
        rows -= some;
    }
    return TESS_OK;
}
