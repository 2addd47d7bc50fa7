/* jp2_probe.c: the memory of OpenJPEG for a JPEG 2000 file whose tile is larger than the blocks that GDAL reads.
 *
 * Many programs write an image as one tile. OpenJPEG then holds its compressed bytes and a description of every code block,
 * and for the window that it decodes the coefficients of its code blocks, with those that the wavelet reaches at all
 * levels, the samples of the window twice, and a sparse array for one component. GDAL reports blocks of 1024 x 1024
 * whatever the tile is, so that tiles and code blocks are read from the file, in its markers SIZ and COD. The factors are
 * bytes that malloc gave out, measured with images of 3 to 24 megapixels, 1 and 3 components and code blocks of 16 to 64
 * pixels (OpenJPEG 2.5). */
#define _XOPEN_SOURCE 700
#include "io/jp2_probe.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"

enum { SOC = 0xff4f, SIZ = 0xff51, COD = 0xff52, SOT = 0xff90 };
enum { BYTES_A_CODE_BLOCK = 400, BYTES_A_PIXEL = 24, BYTES_A_SAMPLE = 17 };

typedef struct codestream {
    int64_t tile_pixels, components, block_pixels;
} codestream;

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* Moves to the codestream: the box jp2c, or the beginning of a file without boxes. */
static bool find_codestream(FILE *file)
{
    unsigned char head[16];
    for (;;) {
        const off_t start = ftello(file);
        if (start < 0 || fread(head, 1, 8, file) != 8)
            return false;
        if (start == 0 && number(head, 2) == SOC)
            return fseeko(file, 0, SEEK_SET) == 0;
        uint64_t bytes = number(head, 4);
        if (bytes == 1 && fread(head + 8, 1, 8, file) == 8)
            bytes = number(head + 8, 8);
        if (memcmp(head + 4, "jp2c", 4) == 0)
            return true;
        if (bytes < 8 || bytes > INT64_MAX - (uint64_t)start ||
            fseeko(file, start + (off_t)bytes, SEEK_SET) != 0)
            return false;
    }
}

/* Sizes of image and tiles on the reference grid, and the number of components. */
static void read_sizes(const unsigned char *body, codestream *out)
{
    int64_t image[2], tile[2];
    for (int i = 0; i < 2; i++) {
        image[i] = (int64_t)number(body + 2 + 4 * i, 4) - (int64_t)number(body + 10 + 4 * i, 4);
        tile[i] = (int64_t)number(body + 18 + 4 * i, 4);
        tile[i] = tess_min_i64(tile[i], tess_max_i64(image[i], 0));
    }
    out->tile_pixels = tile[0] < INT32_MAX && tile[1] < INT32_MAX ? tile[0] * tile[1] : 0;
    out->components = (int64_t)number(body + 34, 2);
}

static bool read_markers(FILE *file, codestream *out)
{
    unsigned char head[4], body[36];
    if (fread(head, 1, 2, file) != 2 || number(head, 2) != SOC)
        return false;
    while (fread(head, 1, 4, file) == 4) {
        const int marker = (int)number(head, 2), length = (int)number(head + 2, 2) - 2;
        const off_t next = ftello(file) + length;
        const int wanted = marker == SIZ ? 36 : marker == COD ? 10 : 0;
        if (length < wanted || marker == SOT ||
            (wanted && fread(body, 1, (size_t)wanted, file) != (size_t)wanted))
            return false;
        if (marker == SIZ)
            read_sizes(body, out);
        if (marker == COD) {
            const int across = (body[6] & 15) + 2, down = (body[7] & 15) + 2;
            out->block_pixels = (int64_t)1 << (across + down);
            return out->tile_pixels > 0;
        }
        if (fseeko(file, next, SEEK_SET) != 0)
            return false;
    }
    return false;
}

int64_t tess_jp2_decoder_bytes(const char *path, int64_t window_pixels)
{
    codestream c = {0};
    struct stat about;
    FILE *file = fopen(path, "rb");
    if (!file)
        return 0;
    const bool known = find_codestream(file) && read_markers(file, &c) && fstat(fileno(file), &about) == 0;
    fclose(file);
    if (!known || c.tile_pixels <= window_pixels)
        return 0;
    /* Near the tile's border the wavelet reaches less. */
    const int64_t reached = tess_min_i64(window_pixels, c.tile_pixels / 4),
                  samples = tess_min_i64(c.tile_pixels, INT64_MAX >> 24) * c.components;
    return (int64_t)about.st_size + samples / c.block_pixels * BYTES_A_CODE_BLOCK +
           reached * (BYTES_A_PIXEL + BYTES_A_SAMPLE * c.components);
}
