/* tiff_load.c: reads tag directories from a file or from memory.
 *
 * Offsets and counts in the file may be arbitrary: each read is checked against the end, subdirectories are at
 * most three levels deep, and every entry and value uses up one byte budget, which stops a directory that
 * refers to itself a thousand times. */
#define _XOPEN_SOURCE 700
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/tiff.h"

enum { DEEPEST = 3, MOST_TAGS = 65535, EXIF = 34665, GPS = 34853, INTEROPERABILITY = 40965 };

typedef struct loading {
    const tess_tiff *tiff;
    bool swap;   /* the byte order must be changed */
    size_t most; /* remaining bytes of the budget */
    bool no_memory;
} loading;

bool tess_tiff_at(const tess_tiff *tiff, uint64_t offset, void *to, size_t bytes)
{
    if (offset > tiff->bytes || bytes > tiff->bytes - offset)
        return false;
    if (tiff->file)
        return fseeko(tiff->file, (off_t)offset, SEEK_SET) == 0 && fread(to, 1, bytes, tiff->file) == bytes;
    memcpy(to, tiff->data + offset, bytes);
    return true;
}

uint64_t tess_tiff_number(const tess_tiff *tiff, const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (uint64_t)at[i] << 8 * (tiff->big_endian ? bytes - 1 - i : i);
    return value;
}

static bool read_head(tess_tiff *tiff)
{
    unsigned char head[16] = {0};
    if (!tess_tiff_at(tiff, 0, head, 8) || (memcmp(head, "II", 2) != 0 && memcmp(head, "MM", 2) != 0))
        return false;
    tiff->big_endian = head[0] == 'M';
    tiff->wide = tess_tiff_number(tiff, head + 2, 2) == 43;
    if (!tiff->wide && tess_tiff_number(tiff, head + 2, 2) != 42)
        return false;
    if (tiff->wide && !tess_tiff_at(tiff, 0, head, 16))
        return false;
    tiff->first = tiff->wide ? tess_tiff_number(tiff, head + 8, 8) : tess_tiff_number(tiff, head + 4, 4);
    return true;
}

bool tess_tiff_open_file(tess_tiff *tiff, FILE *file)
{
    struct stat about;
    *tiff = (tess_tiff){.file = file};
    if (fstat(fileno(file), &about) != 0)
        return false;
    tiff->bytes = (uint64_t)about.st_size;
    return read_head(tiff);
}

bool tess_tiff_open_data(tess_tiff *tiff, const unsigned char *data, size_t bytes)
{
    *tiff = (tess_tiff){.data = data, .bytes = bytes};
    return read_head(tiff);
}

/* Bytes of one value, and of the numbers in it. */
static int value_bytes(int type, int *number)
{
    static const unsigned char bytes[19] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    const int all = type < 19 ? bytes[type] : 0;
    *number = type == 5 || type == 10 ? 4 : all;
    return all;
}

static void swap_numbers(unsigned char *at, size_t bytes, int number)
{
    for (; bytes >= (size_t)number; at += number, bytes -= (size_t)number)
        for (int a = 0, b = number - 1; a < b; a++, b--) {
            const unsigned char byte = at[a];
            at[a] = at[b];
            at[b] = byte;
        }
}

/* EXIF texts that name their code have numbers of 2 bytes in "UNICODE", in the order of the file (Exif 2.32, 4.6.5), unless
 * a mark at their start says which. */
static void swap_text(tess_tiff_tag *tag)
{
    enum { COMMENT = 37510, GPS_METHOD = 27, GPS_AREA = 28, UNDEFINED = 7 };
    static const unsigned char code[8] = "UNICODE";
    unsigned char *text = tag->value.data + sizeof code;
    if ((tag->id != COMMENT && tag->id != GPS_METHOD && tag->id != GPS_AREA) || tag->type != UNDEFINED ||
        tag->value.bytes < sizeof code + 2 || memcmp(tag->value.data, code, sizeof code) != 0 ||
        (text[0] == 0xff && text[1] == 0xfe) || (text[0] == 0xfe && text[1] == 0xff))
        return;
    swap_numbers(text, tag->value.bytes - sizeof code, 2);
}

static bool take_budget(loading *l, uint64_t bytes)
{
    if (bytes > l->most)
        return false;
    l->most -= (size_t)bytes;
    return true;
}

static bool load_value(loading *l, tess_tiff_tag *tag)
{
    const tess_tiff *tiff = l->tiff;
    const int field = tiff->wide ? 8 : 4;
    int number;
    const int each = value_bytes(tag->type, &number);
    if (each == 0 || tag->count > tiff->bytes || tag->count * (uint64_t)each > tiff->bytes ||
        !take_budget(l, tag->count * (uint64_t)each))
        return false;
    tag->value.bytes = (size_t)tag->count * (size_t)each;
    tag->value.data = tess_small_alloc(tag->value.bytes + 1, 1);
    if (!tag->value.data) {
        l->no_memory = true;
        return false;
    }
    if (tag->value.bytes <= (size_t)field)
        memcpy(tag->value.data, tag->field, tag->value.bytes);
    else if (!tess_tiff_at(tiff, tess_tiff_number(tiff, tag->field, field), tag->value.data,
                           tag->value.bytes))
        return false;
    if (l->swap)
        swap_numbers(tag->value.data, tag->value.bytes, number);
    if (l->swap)
        swap_text(tag);
    return true;
}

static bool is_wanted(const uint16_t *wanted, uint16_t id)
{
    while (*wanted && *wanted != id)
        wanted++;
    return *wanted != 0;
}

static int by_id(const void *a, const void *b)
{
    return (int)((const tess_tiff_tag *)a)->id - (int)((const tess_tiff_tag *)b)->id;
}

/* `wanted` is as in tiff.h; all tags of a subdirectory are loaded. */
static bool load(loading *l, uint64_t offset, const uint16_t *wanted, bool raw, int deep,
                 tess_tiff_directory *out, uint64_t *next)
{
    const tess_tiff *tiff = l->tiff;
    const int head = tiff->wide ? 8 : 2, entry = tiff->wide ? 20 : 12, field = tiff->wide ? 8 : 4;
    unsigned char bytes[20];
    *out = (tess_tiff_directory){0};
    if (deep == DEEPEST || !tess_tiff_at(tiff, offset, bytes, (size_t)head))
        return false;
    const uint64_t count = tess_tiff_number(tiff, bytes, head);
    if (count > MOST_TAGS || !take_budget(l, count * sizeof *out->tags))
        return false;
    out->tags = tess_small_alloc((size_t)count + 1, sizeof *out->tags);
    l->no_memory = l->no_memory || !out->tags;
    for (uint64_t i = 0; out->tags && i < count && !l->no_memory; i++) {
        if (!tess_tiff_at(tiff, offset + (uint64_t)head + i * (uint64_t)entry, bytes, (size_t)entry))
            break;
        tess_tiff_tag tag = {.id = (uint16_t)tess_tiff_number(tiff, bytes, 2),
                             .type = (uint16_t)tess_tiff_number(tiff, bytes + 2, 2),
                             .count = tess_tiff_number(tiff, bytes + 4, field),
                             .raw = raw};
        memcpy(tag.field, bytes + 4 + field, (size_t)field);
        bool good = raw || !wanted || is_wanted(wanted, tag.id);
        if (good && !raw && (tag.id == EXIF || tag.id == GPS || tag.id == INTEROPERABILITY)) {
            tag.below = tess_small_alloc(1, sizeof *tag.below);
            l->no_memory = l->no_memory || !tag.below;
            const int size = tag.type == 16 || tag.type == 18 ? 8 : 4;
            good = tag.below &&
                   load(l, tess_tiff_number(tiff, tag.field, size), NULL, false, deep + 1, tag.below, NULL);
        } else if (good && !raw) {
            good = load_value(l, &tag);
        }
        out->tags[out->count] = tag;
        if (good) {
            out->count++;
        } else {
            tess_small_free(tag.value.data);
            if (tag.below)
                tess_tiff_free(tag.below);
            tess_small_free(tag.below);
        }
    }
    if (next)
        *next = tess_tiff_at(tiff, offset + (uint64_t)head + count * (uint64_t)entry, bytes, (size_t)field)
                    ? tess_tiff_number(tiff, bytes, field)
                    : 0;
    if (out->count > 1)
        qsort(out->tags, (size_t)out->count, sizeof *out->tags, by_id);
    if (out->count > 0 && !l->no_memory)
        return true;
    tess_tiff_free(out);
    return false;
}

bool tess_tiff_load(const tess_tiff *tiff, const uint16_t *wanted, bool big_endian, size_t most,
                    tess_tiff_directory *out, uint64_t *next, bool *no_memory)
{
    loading l = {tiff, tiff->big_endian != big_endian, most, false};
    const bool good = load(&l, tiff->first, wanted, wanted == NULL, 0, out, next);
    *no_memory = *no_memory || l.no_memory;
    return good;
}

void tess_tiff_free(tess_tiff_directory *directory)
{
    for (int i = 0; i < directory->count; i++) {
        tess_small_free(directory->tags[i].value.data);
        if (directory->tags[i].below)
            tess_tiff_free(directory->tags[i].below);
        tess_small_free(directory->tags[i].below);
    }
    tess_small_free(directory->tags);
    *directory = (tess_tiff_directory){0};
}
