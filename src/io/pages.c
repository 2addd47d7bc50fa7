#define _XOPEN_SOURCE 700
#include "io/pages.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "io/format.h"

enum { MOST = 100000, SUBFILE_TYPE = 254, REDUCED = 1, MASK = 4, MOST_TAGS = 4096 };

typedef struct tiff {
    FILE *file;
    bool big, swapped; /* BigTIFF; most significant byte first */
} tiff;

static bool read_number(const tiff *t, int bytes, uint64_t *out)
{
    unsigned char raw[8];
    if (fread(raw, 1, (size_t)bytes, t->file) != (size_t)bytes)
        return false;
    *out = 0;
    for (int i = 0; i < bytes; i++)
        *out |= (uint64_t)raw[t->swapped ? bytes - 1 - i : i] << (8 * i);
    return true;
}

/* The first directory's place; false: no TIFF. */
static bool read_head(tiff *t, uint64_t *place)
{
    char order[2];
    uint64_t magic, skipped;
    if (fread(order, 1, 2, t->file) != 2 || order[0] != order[1] || (order[0] != 'I' && order[0] != 'M'))
        return false;
    t->swapped = order[0] == 'M';
    if (!read_number(t, 2, &magic) || (magic != 42 && magic != 43))
        return false;
    t->big = magic == 43;
    return (!t->big || read_number(t, 4, &skipped)) && read_number(t, t->big ? 8 : 4, place);
}

/* What kind of image the directory at *place tells of; then *place is that of the next. */
static bool read_directory(const tiff *t, uint64_t *place, uint64_t *kind)
{
    const int word = t->big ? 8 : 4;
    uint64_t count, tag, type, values;
    *kind = 0;
    if (*place > INT64_MAX || fseeko(t->file, (off_t)*place, SEEK_SET) != 0 ||
        !read_number(t, t->big ? 8 : 2, &count) || count > MOST_TAGS)
        return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t value;
        if (!read_number(t, 2, &tag) || !read_number(t, 2, &type) || !read_number(t, word, &values) ||
            !read_number(t, word, &value))
            return false;
        if (tag == SUBFILE_TYPE)
            *kind = value;
    }
    return read_number(t, word, place);
}

static tess_status walk(tiff *t, tess_pages *out, tess_error *error)
{
    uint64_t place = 0, kind;
    int64_t room = 0, seen = 0;
    if (!read_head(t, &place))
        place = 0;
    while (place) {
        const uint64_t here = place;
        if (seen++ == MOST)
            return tess_fail(error, TESS_BAD_INPUT, "has more than %d pages, or a list of them without end",
                             MOST);
        if (!read_directory(t, &place, &kind))
            return tess_fail(error, TESS_BAD_INPUT, "damaged or truncated: page %lld cannot be read",
                             (long long)seen);
        if (kind & (REDUCED | MASK))
            continue;
        if (out->count == room) {
            room = room ? 2 * room : 64;
            uint64_t *more = tess_small_realloc(out->places, (size_t)room, sizeof *more);
            if (!more)
                return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of pages");
            out->places = more;
        }
        out->places[out->count++] = here;
    }
    if (out->count > 1)
        return TESS_OK;
    tess_small_free(out->places); /* a file of one image is read as it is */
    out->places = tess_small_alloc(1, sizeof *out->places);
    out->count = 1;
    return out->places ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a list of pages");
}

tess_status tess_pages_of(const char *path, tess_pages *out, tess_error *error)
{
    *out = (tess_pages){0};
    tiff t = {.file = fopen(path, "rb")};
    if (!t.file)
        return tess_fail(error, TESS_BAD_INPUT, "%s: %s", path, strerror(errno));
    const tess_status status = walk(&t, out, error);
    fclose(t.file);
    if (status == TESS_OK)
        return TESS_OK;
    tess_small_free(out->places);
    *out = (tess_pages){0};
    return tess_fail_prefix(error, status, path);
}

tess_status tess_reader_open_page(const char *path, uint64_t place, tess_reader **out, tess_error *error)
{
    if (!place)
        return tess_reader_open_axes(path, TESS_AXES_PLAIN, out, error); /* views, not an image or a volume */
    *out = NULL;
    tess_reader *reader = tess_small_alloc(1, sizeof *reader);
    if (reader)
        reader->path = tess_small_strdup(path);
    tess_status status = TESS_OK;
    if (!reader || !reader->path)
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    if (status == TESS_OK) {
        reader->format = &tess_read_gdal;
        reader->info.page = place;
        status = reader->format->open(path, &reader->info, &reader->state, error);
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
