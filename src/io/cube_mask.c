/* cube_mask.c: the truth of a cube, one byte a pixel, from any file that a cube or a picture can be in. */
#define _XOPEN_SOURCE 700
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "io/cube_impl.h"

enum { PIECE = 1 << 20 };

struct tess_cube_mask {
    tess_cube *cube;
    tess_block piece; /* samples of some rows, as in the file */
    int64_t piece_rows;
};

static tess_status check_sizes(const tess_cube_info *mask, const tess_cube_info *cube, tess_error *error)
{
    if (mask->height != cube->height || mask->width != cube->width)
        return tess_fail(error, TESS_BAD_INPUT, "is a mask of %lld x %lld pixels for a cube of %lld x %lld",
                         (long long)mask->height, (long long)mask->width, (long long)cube->height,
                         (long long)cube->width);
    if (mask->count != cube->count)
        return tess_fail(error, TESS_BAD_INPUT, "has masks for %lld images, but the cube's file has %lld",
                         (long long)mask->count, (long long)cube->count);
    return TESS_OK;
}

tess_status tess_cube_mask_open(const char *path, const tess_cube_info *cube,
                                const tess_cube_settings *settings, tess_cube_mask **out, tess_error *error)
{
    *out = NULL;
    tess_cube_mask *mask = tess_small_alloc(1, sizeof *mask);
    if (!mask)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    tess_status status = tess_cube_open_as(path, settings, true, &mask->cube, error);
    if (status == TESS_OK) {
        const tess_cube_info *info = tess_cube_describe(mask->cube);
        status = check_sizes(info, cube, error);
        if (status != TESS_OK)
            tess_fail_prefix(error, status, path);
        mask->piece_rows =
            tess_min_i64(tess_max_i64(PIECE / (int64_t)tess_cube_bytes(info, 1), 1), info->height);
    }
    if (status == TESS_OK)
        *out = mask;
    else
        tess_cube_mask_close(mask);
    return status;
}

static size_t piece_bytes(const tess_cube_mask *mask)
{
    return tess_cube_bytes(tess_cube_describe(mask->cube), mask->piece_rows);
}

size_t tess_cube_mask_held_bytes(const tess_cube_mask *mask)
{
    return tess_cube_describe(mask->cube)->held_bytes + tess_block_granted(piece_bytes(mask));
}

/* A number of any type is zero when its bytes are; -0 is zero too. NaN is not, as in NumPy. */
static bool is_set(const unsigned char *sample, int bytes, bool real)
{
    static const bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    unsigned char any = 0;
    for (int i = 0; i < bytes; i++)
        any |= real && i == (little ? bytes - 1 : 0) ? sample[i] & 0x7f : sample[i];
    return any != 0;
}

static void mark(const tess_cube *cube, const unsigned char *samples, int64_t pixels, uint8_t *marks)
{
    const int bytes = cube->array.sample_bytes;
    for (int64_t i = 0; i < pixels; i++, samples += cube->info.bands * bytes) {
        marks[i] = 0;
        for (int c = 0; c < cube->colours; c++)
            marks[i] |= is_set(samples + c * bytes, bytes, cube->real);
    }
}

tess_status tess_cube_mask_read(tess_cube_mask *mask, int64_t image, int64_t first_row, int64_t rows,
                                uint8_t *marks, tess_error *error)
{
    const tess_cube_info *info = tess_cube_describe(mask->cube);
    if (!mask->piece.data)
        TESS_TRY(tess_block_alloc(mask->cube->memory, &mask->piece, TESS_MEM_HOST, piece_bytes(mask), error));
    while (rows > 0) {
        const int64_t some = tess_min_i64(rows, mask->piece_rows);
        TESS_TRY(tess_cube_read(mask->cube, image, first_row, some, mask->piece.data, error));
        mark(mask->cube, mask->piece.data, some * info->width, marks);
        marks += some * info->width;
        first_row += some;
        rows -= some;
    }
    return TESS_OK;
}

void tess_cube_mask_close(tess_cube_mask *mask)
{
    if (!mask)
        return;
    tess_cube_close(mask->cube);
    tess_block_free(&mask->piece);
    tess_small_free(mask);
}

char *tess_cube_mask_beside(const char *path)
{
    static const char *const suffixes[] = {"",      ".npy", ".png", ".img", ".tif",
                                           ".tiff", ".bsq", ".bil", ".bip"};
    const size_t room = strlen(path) + 16, stem = tess_cube_stem(path);
    char *name = tess_small_alloc(room, 1);
    for (size_t i = 0; name && i < sizeof suffixes / sizeof *suffixes; i++) {
        snprintf(name, room, "%.*s_mask%s", (int)stem, path, i == 0 ? path + stem : suffixes[i]);
        if (access(name, F_OK) == 0)
            return name;
    }
    tess_small_free(name);
    return NULL;
}
