/* gdal_read.c: reads rows through GDAL.
 *
 * GDAL works in blocks and keeps them in one cache for the process, where the blocks of one dataset evict those
 * of another. We do not depend on that cache: one call reads a whole row of blocks into our own strip, and rows
 * are copied from it. The cache gets only what one such call needs (the blocks of all bands at one place). So
 * no block is decoded twice, however few rows the caller reads at a time. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/gdal_range.h"
#include "io/gdal_reader.h"

/* libjpeg only warns when a file or a scan ends early ("Premature end of JPEG file", "Corrupt JPEG data: premature end of data segment"),
 * and fills the rest with gray. */
static bool ended_early(void)
{
    return strstr(tess_gdal.CPLGetLastErrorMsg(), "remature end") != NULL;
}

/* It also only warns of codes that do not exist, after which the picture is noise. Bytes beyond the data of a scan do no harm. */
static bool damaged_jpeg(void)
{
    const char *said = tess_gdal.CPLGetLastErrorMsg();
    return ended_early() || (strstr(said, "Corrupt JPEG data") && !strstr(said, "extraneous bytes"));
}

/* Reads rows [first, first + count), pixels interleaved, with one call of GDAL. */
static tess_status fetch(tess_gdal_reader *reader, int64_t first, int64_t count, void *rows,
                         tess_error *error)
{
    tess_gdal.CPLErrorReset();
    CPLErr result = tess_gdal.GDALDatasetRasterIOEx(
        reader->dataset, GF_Read, 0, (int)first, (int)reader->width, (int)count, rows, (int)reader->width,
        (int)count, reader->type, reader->channels, NULL, (GSpacing)reader->sample_bytes * reader->channels,
        (GSpacing)reader->row_bytes, (GSpacing)reader->sample_bytes, NULL);
    if (result == CE_None && tess_gdal.CPLGetLastErrorType() < CE_Failure && !damaged_jpeg())
        return reader->doubles ? tess_gdal_check_range(&reader->empty, first, count, rows, error) : TESS_OK;
    if (ended_early())
        return tess_fail(error, TESS_BAD_INPUT, "truncated after row %lld of %lld; copy the file again",
                         (long long)first, (long long)reader->height);
    if (damaged_jpeg())
        return tess_fail(
            error, TESS_BAD_INPUT,
            "damaged near row %lld of %lld: libjpeg met codes that no JPEG file has; copy it again",
            (long long)first, (long long)reader->height);
    char what[96];
    snprintf(what, sizeof what, "damaged or truncated after row %lld of %lld", (long long)first,
             (long long)reader->height);
    return tess_gdal_fail(error, TESS_BAD_INPUT, what);
}

static tess_status start(tess_gdal_reader *reader, tess_error *error)
{
    TESS_TRY(tess_gdal_have_room(TESS_GDAL_ROOM, error));
    if (reader->block_rows > 1)
        TESS_TRY(tess_block_alloc(reader->memory, &reader->strip, TESS_MEM_HOST,
                                  reader->row_bytes * (size_t)reader->block_rows, error));
    TESS_TRY(tess_gdal_void_start(&reader->empty, reader->memory, error));
    tess_gdal_cache_share(reader->memory, reader->cache, reader->counted);
    reader->started = true;
    return TESS_OK;
}

tess_status tess_gdal_read_rows(void *state, int64_t first, int64_t count, void *rows, tess_error *error)
{
    tess_gdal_reader *reader = state;
    unsigned char *to = rows;
    if (!reader->started)
        TESS_TRY(start(reader, error));
    while (count > 0) {
        int64_t taken = count / reader->block_rows * reader->block_rows, inside = first - reader->strip_first;
        if (inside >= 0 && inside < reader->strip_rows) {
            taken = tess_min_i64(count, reader->strip_rows - inside);
            memcpy(to, (unsigned char *)reader->strip.data + (size_t)inside * reader->row_bytes,
                   (size_t)taken * reader->row_bytes);
        } else if (first % reader->block_rows == 0 && taken > 0) {
            TESS_TRY(fetch(reader, first, taken, to, error));
        } else {
            taken = 0;
            reader->strip_rows = 0;
            reader->strip_first = first / reader->block_rows * reader->block_rows;
            int64_t have = tess_min_i64(reader->block_rows, reader->height - reader->strip_first);
            TESS_TRY(fetch(reader, reader->strip_first, have, reader->strip.data, error));
            reader->strip_rows = have;
        }
        first += taken;
        count -= taken;
        to += (size_t)taken * reader->row_bytes;
    }
    return TESS_OK;
}
