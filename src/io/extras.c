/* extras.c: chooses the parser for a file's extras, holds their memory, and answers the formats' questions
 * about them. */
#define _XOPEN_SOURCE 700
#include "io/extras.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/tiff.h"

enum { MOST_NOTES = 4096, NEXT_TO_NOTHING = 4096 };

bool tess_extras_room(tess_extras *extras, size_t bytes, tess_blob *out)
{
    *out = (tess_blob){0};
    if (bytes > extras->limit || extras->bytes > TESS_EXTRAS_MOST - bytes)
        return false;
    out->data = tess_small_alloc(bytes + 1, 1); /* terminated by a zero, for texts */
    if (!out->data) {
        extras->no_memory = true;
        return false;
    }
    out->bytes = bytes;
    extras->bytes += bytes;
    return true;
}

void tess_extras_drop(tess_extras *extras, tess_blob *blob)
{
    tess_small_free(blob->data);
    extras->bytes -= blob->bytes;
    *blob = (tess_blob){0};
}

bool tess_extras_read(tess_extras *extras, FILE *file, size_t bytes, tess_blob *out)
{
    if (!tess_extras_room(extras, bytes, out))
        return false;
    if (fread(out->data, 1, bytes, file) == bytes)
        return true;
    tess_extras_drop(extras, out);
    return false;
}

bool tess_extras_note(tess_extras *extras, const char *kind, tess_blob *body)
{
    tess_note *more = extras->note_count < MOST_NOTES
                          ? tess_small_realloc(extras->notes, (size_t)extras->note_count + 1, sizeof *more)
                          : NULL;
    if (!more) {
        extras->no_memory = extras->no_memory || extras->note_count < MOST_NOTES;
        tess_extras_drop(extras, body);
        return false;
    }
    extras->notes = more;
    tess_note *note = &more[extras->note_count++];
    *note = (tess_note){.body = *body};
    snprintf(note->kind, sizeof note->kind, "%s", kind);
    *body = (tess_blob){0};
    return true;
}

void tess_extras_free(tess_extras *extras)
{
    tess_small_free(extras->exif.data);
    tess_small_free(extras->icc.data);
    tess_small_free(extras->xmp.data);
    for (int i = 0; i < extras->note_count; i++)
        tess_small_free(extras->notes[i].body.data);
    tess_small_free(extras->notes);
    *extras = (tess_extras){0};
}

tess_status tess_extras_load(const char *path, tess_extras *out, tess_error *error)
{
    static const struct {
        const char *magic;
        size_t count;
        void (*parse)(FILE *file, tess_extras *out);
    } kinds[] = {
        {"\x89PNG\r\n\x1a\n", 8, tess_extras_from_png},
        {"\xff\xd8\xff", 3, tess_extras_from_jpeg},
        {"II*\0", 4, tess_extras_from_tiff},
        {"MM\0*", 4, tess_extras_from_tiff},
        {"II+\0", 4, tess_extras_from_tiff},
        {"MM\0+", 4, tess_extras_from_tiff},
        {"RIFF", 4, tess_extras_from_webp},
        {"\0\0\0\x0cjP  ", 8, tess_extras_from_jp2},
    };
    char head[8] = "";
    struct stat about;
    *out = (tess_extras){.photometric = -1};
    FILE *file = fopen(path, "rb");
    if (!file)
        return TESS_OK;
    const size_t count = fread(head, 1, sizeof head, file);
    out->limit = fstat(fileno(file), &about) == 0 ? (size_t)tess_min_i64(TESS_EXTRAS_MOST, about.st_size) : 0;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (count >= kinds[k].count && memcmp(head, kinds[k].magic, kinds[k].count) == 0) {
            out->known = true;
            rewind(file);
            kinds[k].parse(file, out);
            break;
        }
    fclose(file);
    if (out->exif.bytes > 6 &&
        memcmp(out->exif.data, "Exif\0", 6) == 0) { /* the marker of a JPEG, which some writers keep */
        out->exif.bytes -= 6;
        out->bytes -= 6;
        memmove(out->exif.data, out->exif.data + 6, out->exif.bytes);
    }
    if (out->exif.data && tess_extras_no_density(out))
        tess_extras_density_from_exif(out);
    if (!out->no_memory)
        return TESS_OK;
    tess_extras_free(out);
    return tess_fail(error, TESS_NO_MEMORY, "no memory for the file's EXIF data and profile");
}

size_t tess_extras_held(const tess_extras *extras)
{
    return extras->bytes > NEXT_TO_NOTHING ? 3 * extras->bytes : 0;
}

void tess_extras_size(uint64_t bytes, char *to, size_t size)
{
    if (bytes < 1000)
        snprintf(to, size, "%d bytes", (int)bytes);
    else if (bytes < 1000000)
        snprintf(to, size, "%.0f KB", ceil((double)bytes / 100) / 10);
    else
        snprintf(to, size, "%.1f MB", ceil((double)bytes / 100) / 1e4);
}

int tess_extras_orientation(const tess_extras *extras)
{
    const int value = extras->exif.data ? tess_tiff_orientation(extras->exif.data, extras->exif.bytes) : 1;
    return value >= 1 && value <= 8 ? value : 1;
}

bool tess_extras_icc_fits(const tess_extras *extras, const tess_image_info *info)
{
    const int colours = info->channels - info->alpha;
    if (extras->icc.bytes < 128)
        return false;
    const unsigned char *space = extras->icc.data + 16;
    if (memcmp(space, "GRAY", 4) == 0)
        return colours == 1;
    if (memcmp(space, "CMYK", 4) == 0)
        return colours == 4;
    return colours >= 3;
}

bool tess_extras_no_density(const tess_extras *extras)
{
    return extras->unit == TESS_DENSITY_NONE ||
           (extras->unit == TESS_DENSITY_ASPECT && extras->density[0] == extras->density[1] &&
            extras->density[0] <= 1);
}

bool tess_extras_density(const tess_extras *extras, tess_density_unit unit, double out[2])
{
    static const double metres[] = {
        [TESS_DENSITY_INCH] = 0.0254, [TESS_DENSITY_CM] = 0.01, [TESS_DENSITY_METRE] = 1};
    if (extras->unit < TESS_DENSITY_INCH || unit < TESS_DENSITY_INCH)
        return false;
    for (int i = 0; i < 2; i++) {
        if (!(extras->density[i] > 0) || extras->density[i] > 1e9)
            return false;
        out[i] = extras->density[i] * (metres[unit] / metres[extras->unit]);
    }
    return true;
}
