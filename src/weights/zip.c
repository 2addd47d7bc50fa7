/* zip.c: the directory of a zip archive, with zip64, for archives with stored (uncompressed) entries.
 *
 * All sizes come from the central directory at the end of the file. A local header is read only to find where
 * its contents begin, because its name and padding may have other lengths than in the directory. Every offset
 * is checked against the file before it is followed. An entry that is not requested may be of any kind. */
#include "weights/zip.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
    END_BYTES = 22, /* end of central directory */
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    ENTRY_BYTES = 46,
    LOCAL_BYTES = 30,
    TAIL_BYTES = END_BYTES + 65535 + LOCATOR_BYTES,
    ENCRYPTED = 1,
};

static tess_status damaged(const tess_zip *a, const char *what)
{
    return tess_fail(a->error, TESS_BAD_INPUT, "is a damaged zip archive: %s; download or save it again",
                     what);
}

/* A zip64 archive has a locator right before its end record. */
static tess_status read_end64(tess_zip *a, const unsigned char *locator)
{
    unsigned char end[END64_BYTES];
    TESS_TRY(tess_weights_bytes(a->weights, tess_le(locator + 8, 8), end, sizeof end, a->error));
    if (tess_le(end, 4) != 0x06064b50)
        return damaged(a, "its zip64 end record is not where it should be");
    a->bytes = tess_le(end + 40, 8);
    a->begin = tess_le(end + 48, 8);
    return TESS_OK;
}

static tess_status find_end(tess_zip *a, const unsigned char *tail, size_t bytes)
{
    for (size_t at = bytes - END_BYTES + 1; at-- > 0;) {
        const unsigned char *end = tail + at;
        if (tess_le(end, 4) != 0x06054b50 || at + END_BYTES + tess_le(end + 20, 2) != bytes)
            continue;
        a->bytes = tess_le(end + 12, 4);
        a->begin = tess_le(end + 16, 4);
        bool zip64 = at >= LOCATOR_BYTES && tess_le(end - LOCATOR_BYTES, 4) == 0x07064b50;
        return zip64 ? read_end64(a, end - LOCATOR_BYTES) : TESS_OK;
    }
    return damaged(a, "it has no directory at its end, so it is cut short");
}

static tess_status load_directory(tess_zip *a)
{
    uint64_t file = a->weights->bytes;
    size_t bytes = file < TAIL_BYTES ? (size_t)file : TAIL_BYTES;
    if (bytes < END_BYTES)
        return damaged(a, "it is cut short");
    unsigned char *tail = tess_small_alloc(bytes, 1);
    if (!tail)
        return tess_fail(a->error, TESS_NO_MEMORY, "no memory for the end of a zip archive");
    tess_status status = tess_weights_bytes(a->weights, file - bytes, tail, bytes, a->error);
    if (status == TESS_OK)
        status = find_end(a, tail, bytes);
    tess_small_free(tail);
    TESS_TRY(status);
    if (a->begin > file || a->bytes > file - a->begin || a->bytes > TESS_DIRECTORY_MAX)
        return damaged(a, "its directory lies outside it");
    a->directory = tess_small_alloc((size_t)a->bytes, 1);
    if (!a->directory)
        return tess_fail(a->error, TESS_NO_MEMORY, "no memory for a zip directory of %llu bytes",
                         (unsigned long long)a->bytes);
    return tess_weights_bytes(a->weights, a->begin, a->directory, (size_t)a->bytes, a->error);
}

/* Sizes of 4 GiB and more are in an extra field, in this order, each only where the short one is all ones. */
static bool read_wide(const unsigned char *extra, size_t length, uint64_t *values[3])
{
    bool needed = false;
    for (int i = 0; i < 3; i++)
        needed |= *values[i] == UINT32_MAX;
    for (size_t at = 0; needed && at + 4 <= length;) {
        size_t kind = tess_le(extra + at, 2), bytes = tess_le(extra + at + 2, 2);
        at += 4;
        if (bytes > length - at)
            return false;
        if (kind == 1) {
            const unsigned char *from = extra + at, *end = from + bytes;
            for (int i = 0; i < 3; i++)
                if (*values[i] == UINT32_MAX) {
                    if (end - from < 8)
                        return false;
                    *values[i] = tess_le(from, 8);
                    from += 8;
                }
            return true;
        }
        at += bytes;
    }
    return !needed;
}

static int compare_entries(const void *a, const void *b)
{
    const tess_zip_entry *x = a, *y = b;
    int order = memcmp(x->name, y->name, x->name_length < y->name_length ? x->name_length : y->name_length);
    return order ? order : (x->name_length > y->name_length) - (x->name_length < y->name_length);
}

static tess_status read_entries(tess_zip *a)
{
    a->entries = tess_small_alloc((size_t)a->bytes / ENTRY_BYTES, sizeof *a->entries);
    if (!a->entries)
        return tess_fail(a->error, TESS_NO_MEMORY, "no memory for a zip directory");
    for (size_t at = 0, left; (left = (size_t)a->bytes - at) >= ENTRY_BYTES;) {
        const unsigned char *e = a->directory + at;
        size_t name = tess_le(e + 28, 2), extra = tess_le(e + 30, 2), comment = tess_le(e + 32, 2);
        if (tess_le(e, 4) != 0x02014b50 || name + extra + comment > left - ENTRY_BYTES)
            return damaged(a, "its directory cannot be read");
        uint64_t packed = tess_le(e + 20, 4);
        tess_zip_entry *into = &a->entries[a->count++];
        *into = (tess_zip_entry){.name = (const char *)e + ENTRY_BYTES,
                                 .name_length = name,
                                 .bytes = tess_le(e + 24, 4),
                                 .local = tess_le(e + 42, 4)};
        if (!read_wide(e + ENTRY_BYTES + name, extra, (uint64_t *[]){&into->bytes, &packed, &into->local}))
            return damaged(a, "its directory cannot be read");
        into->stored = tess_le(e + 10, 2) == 0 && !(tess_le(e + 8, 2) & ENCRYPTED) && packed == into->bytes;
        at += ENTRY_BYTES + name + extra + comment;
    }
    qsort(a->entries, a->count, sizeof *a->entries, compare_entries);
    return TESS_OK;
}

const tess_zip_entry *tess_zip_find(const tess_zip *a, const char *name, size_t length)
{
    tess_zip_entry wanted = {.name = name, .name_length = length};
    return a->count ? bsearch(&wanted, a->entries, a->count, sizeof wanted, compare_entries) : NULL;
}

tess_status tess_zip_contents(const tess_zip *a, const tess_zip_entry *e, uint64_t *offset)
{
    unsigned char local[LOCAL_BYTES];
    if (!e->stored)
        return tess_fail(
            a->error, TESS_BAD_INPUT,
            "has a compressed or encrypted entry '%.*s'; torch.save stores them plainly: save it again",
            (int)(e->name_length < 64 ? e->name_length : 64), e->name);
    TESS_TRY(tess_weights_bytes(a->weights, e->local, local, sizeof local, a->error));
    *offset = e->local + LOCAL_BYTES + tess_le(local + 26, 2) + tess_le(local + 28, 2);
    if (tess_le(local, 4) != 0x04034b50 || *offset > a->weights->bytes ||
        e->bytes > a->weights->bytes - *offset)
        return damaged(a, "an entry lies outside it");
    return TESS_OK;
}

tess_status tess_zip_read(tess_zip *a, const tess_weights *weights, tess_error *error)
{
    *a = (tess_zip){.weights = weights, .error = error};
    TESS_TRY(load_directory(a));
    return read_entries(a);
}

void tess_zip_free(tess_zip *a)
{
    tess_small_free(a->entries);
    tess_small_free(a->directory);
    *a = (tess_zip){0};
}
