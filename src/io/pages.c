#define _XOPEN_SOURCE 700
#include "io/pages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "io/format.h"
#include "io/tiff_page.h"

enum { MOST = 100000, SHORT = 3 };
enum {
    WIDTH = 256,
    HEIGHT = 257,
    BITS = 258,
    COMPRESSION = 259,
    DESCRIPTION = 270,
    SAMPLES = 277,
    METAMORPH = 33629
};
enum { LONG = 4, MOST_DESCRIPTION = 16 << 20 };

/* The first number of a tag in a directory that was loaded as little-endian. */
static uint64_t number_of(const tess_tiff_directory *d, uint16_t id, uint64_t otherwise)
{
    for (int i = 0; i < d->count; i++) {
        const tess_tiff_tag *tag = &d->tags[i];
        const size_t bytes = tag->type == SHORT ? 2 : 4;
        if (tag->id != id || (tag->type != SHORT && tag->type != LONG) || tag->value.bytes < bytes)
            continue;
        uint64_t value = 0;
        for (size_t b = 0; b < bytes; b++)
            value |= (uint64_t)tag->value.data[b] << 8 * b;
        return value;
    }
    return otherwise;
}

/* Slices that follow one another in the file while one directory describes the first: ImageJ writes stacks of more than
 * 4 GB so, and says how many there are in the description; MetaMorph has a tag with an entry for each. A slice that was
 * taken out of such a stack may still have that description. */
static int64_t slices_of(const tess_tiff *t)
{
    static const uint16_t wanted[] = {WIDTH, HEIGHT, BITS, COMPRESSION, DESCRIPTION, SAMPLES, 0};
    tess_tiff_directory d = {0}, raw = {0};
    bool no_memory = false;
    int64_t slices = 1;
    if (!tess_tiff_load(t, wanted, false, MOST_DESCRIPTION, &d, NULL, &no_memory))
        return 1;
    for (int i = 0; i < d.count; i++) {
        const char *text = (const char *)d.tags[i].value.data, *line; /* a zero follows the last byte */
        if (d.tags[i].id == DESCRIPTION && strncmp(text, "ImageJ=", 7) == 0 &&
            (line = strstr(text, "\nimages=")) != NULL)
            slices = strtoll(line + 8, NULL, 10);
    }
    if (slices <= 1 && tess_tiff_load(t, NULL, t->big_endian, MOST_DESCRIPTION, &raw, NULL, &no_memory))
        for (int i = 0; i < raw.count; i++)
            slices = raw.tags[i].id == METAMORPH ? (int64_t)raw.tags[i].count : slices;
    const uint64_t width = number_of(&d, WIDTH, 0), height = number_of(&d, HEIGHT, 0),
                   bits = number_of(&d, BITS, 1) * number_of(&d, SAMPLES, 1);
    const double bytes = (double)width * (double)height * (double)bits / 8;
    const bool plain = number_of(&d, COMPRESSION, 1) == 1;
    tess_tiff_free(&d);
    tess_tiff_free(&raw);
    return plain && slices > 1 && (double)slices * bytes <= (double)t->bytes ? slices : 1;
}

static tess_status walk(FILE *file, tess_pages *out, tess_error *error)
{
    tess_tiff t;
    tess_tiff_page first = {0}, page, full = {0}; /* full: what the first page is a preview of */
    uint64_t place = tess_tiff_open_file(&t, file) ? t.first : 0;
    uint64_t mark = 0; /* the place at the last power of two: a cyclic list reaches it again */
    int64_t room = 0, seen = 0;
    while (place) {
        const uint64_t here = place;
        if (seen++ == MOST || here == mark)
            return tess_fail(error, TESS_BAD_INPUT, "has more than %d pages, or a list of them without end",
                             MOST);
        if ((seen & (seen - 1)) == 0)
            mark = here;
        if (!tess_tiff_page_read(&t, &place, &page))
            return tess_fail(error, TESS_BAD_INPUT, "damaged or truncated: page %lld cannot be read",
                             (long long)seen);
        page.number = seen;
        if (seen == 1)
            first = page;
        else
            tess_tiff_page_prefer(&first, &page, &full);
        if (page.kind & (TESS_TIFF_REDUCED | TESS_TIFF_MASK))
            continue;
        if (out->count == room) {
            room = room ? 2 * room : 64;
            uint64_t *more = tess_small_realloc(out->places, (size_t)room, sizeof *more);
            if (!more)
                return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of pages");
            out->places = more;
        }
        if (out->count == 0)
            out->first = seen;
        out->places[out->count++] = here;
    }
    if (out->count > 1)
        return TESS_OK;
    TESS_TRY(tess_tiff_page_check(&t, &first, &full, error));
    const int64_t slices = seen ? slices_of(&t) : 1;
    if (slices > 1)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "holds a stack of %lld slices behind one page, as ImageJ and MetaMorph write them, of which "
            "only the first could be read; save it as an image sequence, or as a volume (D,H,W) in an "
            ".npy file",
            (long long)slices);
    tess_small_free(out->places); /* a file with one image is read as usual */
    out->places = tess_small_alloc(1, sizeof *out->places);
    out->count = 1;
    return out->places ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a list of pages");
}

static tess_status list_pages(const char *path, tess_pages *out, tess_error *error)
{
    *out = (tess_pages){0};
    FILE *file = NULL;
    tess_status status = tess_file_open(path, &file, error);
    if (status == TESS_OK)
        status = walk(file, out, error);
    if (file)
        fclose(file);
    if (status == TESS_OK)
        return TESS_OK;
    tess_small_free(out->places);
    *out = (tess_pages){0};
    return status;
}

tess_status tess_pages_of(const char *path, tess_pages *out, tess_error *error)
{
    const tess_status status = list_pages(path, out, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

tess_status tess_pages_check_one(const char *path, tess_error *error)
{
    tess_pages pages;
    TESS_TRY(list_pages(path, &pages, error));
    tess_small_free(pages.places);
    if (pages.count == 1)
        return TESS_OK;
    return tess_fail(error, TESS_UNSUPPORTED,
                     "holds %lld pages, and an image has one; split it (gdal_translate GTIFF_DIR:%lld:IN.tif "
                     "OUT.tif takes the first), or stack the pages into a volume (D,H,W) in an .npy file",
                     (long long)pages.count, (long long)pages.first);
}

tess_status tess_reader_open_page(tess_memory *memory, const char *path, uint64_t place, tess_reader **out,
                                  tess_error *error)
{
    if (!place)
        return tess_reader_open_doubles(memory, path, TESS_AXES_PLAIN, out,
                                        error); /* views, not an image or a volume */
    *out = NULL;
    tess_reader *reader = tess_small_alloc(1, sizeof *reader);
    if (reader)
        reader->path = tess_small_strdup(path);
    tess_status status = TESS_OK;
    if (!reader || !reader->path)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    if (status == TESS_OK) {
        reader->memory = memory;
        reader->format = &tess_read_gdal;
        reader->info.page = place;
        reader->info.dtype = TESS_F64;
        status = reader->format->open(memory, path, &reader->info, &reader->state, error);
    }
    if (status == TESS_OK) {
        *out = reader;
        return TESS_OK;
    }
    if (reader)
        tess_small_free(reader->path);
    tess_small_free(reader);
    return tess_fail_prefix(error, status, path);
}
