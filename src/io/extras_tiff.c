/* extras_tiff.c: converts the extras of a TIFF to EXIF data like a photograph's, and back.
 *
 * GDAL reads and writes the georeference and the tags that it knows, but drops the orientation and the EXIF
 * directory. These are read from the first directory into EXIF data (a TIFF file without pixels). They are
 * inserted into a finished TIFF by a new first directory at its end, which repeats the old entries: no pixel
 * moves. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <string.h>

#include "base/checked.h"
#include "io/tiff.h"

enum {
    PHOTOMETRIC = 262,
    DESCRIPTION = 270,
    ORIENTATION = 274,
    X_RESOLUTION = 282,
    Y_RESOLUTION = 283,
    RESOLUTION_UNIT = 296,
    EXTRA_SAMPLES = 338,
    XMP = 700,
    PROFILE = 34675,
    MOST_DESCRIPTION =
        8192 /* larger values are a program's private data, and EXIF data in a JPEG ends at 64 KiB */
};

static const uint16_t carried[] = {270, 271, 272,   274,   305,   306,   315,
                                   318, 319, 33432, 33723, 34665, 34853, 0};

/* --- storing --- */

static void put_number(unsigned char *at, uint64_t value, int bytes, bool big_endian)
{
    for (int i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> 8 * (big_endian ? bytes - 1 - i : i));
}

static size_t head_bytes(const tess_tiff_directory *d, bool wide)
{
    return tess_align_size((size_t)d->count * (wide ? 20 : 12) + (wide ? 16 : 6), 8);
}

static size_t stored_bytes(const tess_tiff_directory *d, bool wide)
{
    size_t bytes = head_bytes(d, wide);
    for (int i = 0; i < d->count; i++)
        bytes += d->tags[i].below ? stored_bytes(d->tags[i].below, wide)
                                  : tess_align_size(d->tags[i].value.bytes, 8);
    return bytes;
}

typedef struct storing {
    unsigned char *to;
    bool wide, big_endian;
    uint64_t base;
    size_t used;
} storing;

static void store(storing *s, const tess_tiff_directory *d, uint64_t next)
{
    const int field = s->wide ? 8 : 4;
    unsigned char *at = s->to + s->used;
    s->used += head_bytes(d, s->wide);
    put_number(at, (uint64_t)d->count, s->wide ? 8 : 2, s->big_endian);
    at += s->wide ? 8 : 2;
    for (int i = 0; i < d->count; i++, at += 4 + 2 * field) {
        const tess_tiff_tag *tag = &d->tags[i];
        put_number(at, tag->id, 2, s->big_endian);
        put_number(at + 2, tag->below ? (s->wide ? 16 : 4) : tag->type, 2, s->big_endian);
        put_number(at + 4, tag->below ? 1 : tag->count, field, s->big_endian);
        unsigned char *value = at + 4 + field;
        if (tag->raw) {
            memcpy(value, tag->field, (size_t)field);
        } else if (tag->below) {
            put_number(value, s->base + s->used, field, s->big_endian);
            store(s, tag->below, 0);
        } else if (tag->value.bytes <= (size_t)field) {
            memcpy(value, tag->value.data, tag->value.bytes);
        } else {
            put_number(value, s->base + s->used, field, s->big_endian);
            memcpy(s->to + s->used, tag->value.data, tag->value.bytes);
            s->used += tess_align_size(tag->value.bytes, 8);
        }
    }
    put_number(at, next, field, s->big_endian);
}

unsigned char *tess_tiff_store(const tess_tiff_directory *d, bool wide, bool big_endian, uint64_t base,
                               uint64_t next, size_t *bytes)
{
    storing s = {.wide = wide, .big_endian = big_endian, .base = base};
    *bytes = stored_bytes(d, wide);
    s.to = tess_small_alloc(*bytes, 1);
    if (s.to)
        store(&s, d, next);
    return s.to;
}

/* --- reading --- */

static tess_tiff_tag *find(tess_tiff_directory *d, uint16_t id)
{
    for (int i = 0; i < d->count; i++)
        if (d->tags[i].id == id)
            return &d->tags[i];
    return NULL;
}

/* Reads a number from a directory that was loaded as little-endian. */
static uint64_t number_of(const tess_tiff_tag *tag, size_t at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; tag && at + (size_t)i < tag->value.bytes && i < bytes; i++)
        value |= (uint64_t)tag->value.data[at + (size_t)i] << 8 * i;
    return value;
}

int tess_tiff_orientation(const unsigned char *data, size_t bytes)
{
    static const uint16_t wanted[] = {ORIENTATION, 0};
    tess_tiff tiff;
    tess_tiff_directory d;
    bool no_memory = false;
    if (!tess_tiff_open_data(&tiff, data, bytes) ||
        !tess_tiff_load(&tiff, wanted, false, 1 << 20, &d, NULL, &no_memory))
        return 0;
    const int value = (int)number_of(&d.tags[0], 0, 2);
    tess_tiff_free(&d);
    return value;
}

static void take_density(tess_tiff_directory *d, tess_extras *out)
{
    tess_tiff_tag *const sides[] = {find(d, X_RESOLUTION), find(d, Y_RESOLUTION)};
    const int unit = find(d, RESOLUTION_UNIT) ? (int)number_of(find(d, RESOLUTION_UNIT), 0, 2) : 2;
    double density[2];
    for (int i = 0; i < 2; i++) {
        const double above = (double)number_of(sides[i], 0, 4), under = (double)number_of(sides[i], 4, 4);
        if (!sides[i] || sides[i]->type != 5 || !(above > 0) || !(under > 0))
            return;
        density[i] = above / under;
    }
    memcpy(out->density, density, sizeof density);
    out->unit = unit == 2 ? TESS_DENSITY_INCH : unit == 3 ? TESS_DENSITY_CM : TESS_DENSITY_ASPECT;
}

void tess_extras_density_from_exif(tess_extras *extras)
{
    static const uint16_t wanted[] = {X_RESOLUTION, Y_RESOLUTION, RESOLUTION_UNIT, 0};
    tess_tiff tiff;
    tess_tiff_directory d;
    if (!tess_tiff_open_data(&tiff, extras->exif.data, extras->exif.bytes) ||
        !tess_tiff_load(&tiff, wanted, false, 1 << 20, &d, NULL, &extras->no_memory))
        return;
    take_density(&d, extras);
    tess_tiff_free(&d);
}

/* Reads what the samples mean. */
static void take_samples(tess_tiff_directory *d, tess_extras *out)
{
    const tess_tiff_tag *colours = find(d, PHOTOMETRIC), *others = find(d, EXTRA_SAMPLES);
    if (colours)
        out->photometric = (int)number_of(colours, 0, 2);
    out->more_samples = others != NULL;
    if (others && others->type == 3 && others->value.bytes >= 2)
        out->associated = number_of(others, others->value.bytes - 2, 2) == 1;
}

/* Moves the value of a tag into a blob. */
static void take_value(tess_tiff_tag *tag, tess_extras *out, tess_blob *to)
{
    if (!tag || tag->value.bytes == 0)
        return;
    *to = tag->value;
    out->bytes += to->bytes;
    tag->value = (tess_blob){0};
}

/* Keeps the tags that are carried over; an upright orientation is not. */
static void keep_carried(tess_tiff_directory *d)
{
    int kept = 0;
    for (int i = 0; i < d->count; i++) {
        tess_tiff_tag *tag = &d->tags[i];
        bool keep = false;
        for (const uint16_t *id = carried; *id; id++)
            keep = keep || *id == tag->id;
        if (tag->id == DESCRIPTION && tag->value.bytes > MOST_DESCRIPTION)
            keep = false;
        if (tag->id == ORIENTATION && number_of(tag, 0, 2) == 1)
            keep = false;
        if (keep)
            d->tags[kept++] = *tag;
        else
            tess_small_free(tag->value.data);
    }
    d->count = kept;
}

void tess_extras_from_tiff(FILE *file, tess_extras *out)
{
    static const uint16_t wanted[] = {262, 270, 271, 272, 274,   282,   283,   296,   305,   306, 315,
                                      318, 319, 338, 700, 33432, 33723, 34665, 34675, 34853, 0};
    tess_tiff tiff;
    tess_tiff_directory d;
    if (!tess_tiff_open_file(&tiff, file))
        return;
    tess_extras_find_private(&tiff, out);
    if (!tess_tiff_load(&tiff, wanted, false, TESS_EXTRAS_MOST, &d, NULL, &out->no_memory))
        return;
    take_density(&d, out);
    take_samples(&d, out);
    take_value(find(&d, XMP), out, &out->xmp);
    take_value(find(&d, PROFILE), out, &out->icc);
    if (out->icc.data)
        snprintf(out->icc_name, sizeof out->icc_name, "ICC profile");
    keep_carried(&d);
    size_t bytes = 0;
    unsigned char *stored = d.count > 0 ? tess_tiff_store(&d, false, false, 8, 0, &bytes) : NULL;
    if (d.count > 0 && (!stored || !(out->exif.data = tess_small_alloc(bytes + 9, 1))))
        out->no_memory = true;
    if (out->exif.data) {
        memcpy(out->exif.data, "II*\0\x08\0\0\0", 8);
        memcpy(out->exif.data + 8, stored, bytes);
        out->exif.bytes = bytes + 8;
        out->bytes += out->exif.bytes;
    }
    tess_small_free(stored);
    tess_tiff_free(&d);
}

/* --- inserting --- */

/* Adds the tags of `more` that the file lacks, in sorted order. `more` still owns them. */
static bool merge(const tess_tiff_directory *old, const tess_tiff_directory *more, tess_tiff_directory *out)
{
    out->tags = tess_small_alloc((size_t)old->count + (size_t)more->count, sizeof *out->tags);
    if (!out->tags)
        return false;
    for (int a = 0, b = 0; a < old->count || b < more->count;) {
        if (b == more->count || (a < old->count && old->tags[a].id <= more->tags[b].id)) {
            while (b < more->count && a < old->count && more->tags[b].id == old->tags[a].id)
                b++;
            out->tags[out->count++] = old->tags[a++];
        } else {
            out->tags[out->count++] = more->tags[b++];
        }
    }
    return true;
}

static bool append(FILE *file, const tess_tiff *tiff, const tess_tiff_directory *all, uint64_t next,
                   bool *no_memory)
{
    const uint64_t base = (tiff->bytes + 7) / 8 * 8;
    const unsigned char padding[8] = {0};
    unsigned char offset[8];
    size_t bytes = 0;
    const int field = tiff->wide ? 8 : 4;
    unsigned char *stored = tess_tiff_store(all, tiff->wide, tiff->big_endian, base, next, &bytes);
    *no_memory = !stored;
    const bool fits = stored && (tiff->wide || base + bytes <= UINT32_MAX);
    put_number(offset, base, field, tiff->big_endian);
    const bool good = fits && fseeko(file, (off_t)tiff->bytes, SEEK_SET) == 0 &&
                      fwrite(padding, 1, (size_t)(base - tiff->bytes), file) == base - tiff->bytes &&
                      fwrite(stored, 1, bytes, file) == bytes && fflush(file) == 0 &&
                      fseeko(file, tiff->wide ? 8 : 4, SEEK_SET) == 0 &&
                      fwrite(offset, 1, (size_t)field, file) == (size_t)field;
    tess_small_free(stored);
    return good;
}

tess_status tess_tiff_insert(const char *path, const tess_extras *extras, tess_error *error)
{
    tess_tiff tiff = {0}, source;
    tess_tiff_directory old = {0}, more = {0}, all = {0};
    bool no_memory = false, good = true;
    uint64_t next = 0;
    FILE *file = fopen(path, "r+b");
    if (!file)
        return tess_fail(error, TESS_IO_FAILED, "its EXIF data cannot be written (%s)", strerror(errno));
    if (tess_tiff_open_file(&tiff, file) &&
        tess_tiff_open_data(&source, extras->exif.data, extras->exif.bytes) &&
        tess_tiff_load(&source, carried, tiff.big_endian, TESS_EXTRAS_MOST, &more, NULL, &no_memory) &&
        tess_tiff_load(&tiff, NULL, tiff.big_endian, TESS_EXTRAS_MOST, &old, &next, &no_memory)) {
        no_memory = no_memory || !merge(&old, &more, &all);
        good = !no_memory && append(file, &tiff, &all, next, &no_memory);
    }
    tess_small_free(all.tags);
    tess_tiff_free(&old);
    tess_tiff_free(&more);
    if (fclose(file) != 0)
        good = false;
    if (no_memory)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for its EXIF data");
    return good ? TESS_OK
                : tess_fail(error, TESS_IO_FAILED, "its EXIF data cannot be written (%s)", strerror(errno));
}
