/* extras_png.c: the extras of a PNG: the chunks eXIf, iCCP, cICP, sRGB, gAMA, cHRM, bKGD, pHYs and texts, wherever they
 * are in the file, and others that only a PNG can hold.
 *
 * libpng gives the chunks before the pixels when it opens the file, and the others only after the last row,
 * which is too late for a writer that starts at once. So this file walks the chunks itself and skips the
 * pixels. A chunk with a wrong checksum is left out. */
#define _XOPEN_SOURCE 700
#include <string.h>
#include <zlib.h>

#include "io/extras.h"

enum { INFLATE_STEP = 65536 };

static const char XMP_KEY[] = "XML:com.adobe.xmp";

static uint32_t big_endian(const unsigned char *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The inflated data may be larger than the file, so it has a separate bound. */
static unsigned char *inflate_all(z_stream *stream, size_t most, size_t *used, bool *no_memory)
{
    unsigned char *made = NULL;
    size_t room = 0;
    int result = Z_OK;
    for (*used = 0; result == Z_OK && *used < most; *used = room - stream->avail_out) {
        if (*used == room) {
            room = room ? 2 * room : INFLATE_STEP;
            room = room < most ? room : most;
            unsigned char *larger = tess_small_realloc(made, room + 1, 1);
            *no_memory = *no_memory || !larger;
            if (!larger)
                break;
            made = larger;
        }
        stream->next_out = made + *used;
        stream->avail_out = (uInt)(room - *used);
        result = inflate(stream, Z_NO_FLUSH);
    }
    if (result == Z_STREAM_END)
        return made;
    tess_small_free(made);
    return NULL;
}

bool tess_extras_inflate(tess_extras *extras, const unsigned char *data, size_t bytes, size_t most,
                         tess_blob *out)
{
    z_stream stream = {0};
    size_t used = 0;
    *out = (tess_blob){0};
    if (extras->bytes >= TESS_EXTRAS_MOST || bytes > UINT32_MAX || inflateInit(&stream) != Z_OK)
        return false;
    most = most < TESS_EXTRAS_MOST - extras->bytes ? most : TESS_EXTRAS_MOST - extras->bytes;
    stream.next_in = (unsigned char *)(uintptr_t)data;
    stream.avail_in = (uInt)bytes;
    out->data = inflate_all(&stream, most, &used, &extras->no_memory);
    inflateEnd(&stream);
    if (!out->data)
        return false;
    out->data[used] = 0;
    out->bytes = used;
    extras->bytes += used;
    return true;
}

static const unsigned char *after_zero(const unsigned char *at, const unsigned char *end)
{
    const unsigned char *zero = at < end ? memchr(at, 0, (size_t)(end - at)) : NULL;
    return zero ? zero + 1 : NULL;
}

/* Returns the start of the text and whether it is compressed; NULL when the chunk is not a text. */
static const unsigned char *text_of(const tess_note *note, bool *packed)
{
    const unsigned char *end = note->body.data + note->body.bytes, *at = after_zero(note->body.data, end);
    *packed = false;
    if (!at || note->kind[0] == 't')
        return at;
    if (note->kind[0] == 'z') {
        *packed = true;
        return at < end && at[0] == 0 ? at + 1 : NULL;
    }
    if (end - at < 2 || at[1] != 0)
        return NULL;
    *packed = at[0] != 0;
    at = after_zero(at + 2, end);         /* skip the language */
    return at ? after_zero(at, end) : at; /* and the translated keyword */
}

bool tess_png_note_text(tess_extras *extras, const tess_note *note, size_t most, tess_blob *out)
{
    bool packed;
    const unsigned char *text = text_of(note, &packed);
    if (!text)
        return false;
    const size_t key = strlen((const char *)note->body.data) + 1;
    size_t bytes = note->body.bytes - (size_t)(text - note->body.data);
    tess_blob plain = {0};
    if (packed) {
        if (!tess_extras_inflate(extras, text, bytes, most, &plain))
            return false;
        text = plain.data;
        bytes = plain.bytes;
    }
    out->data = tess_small_alloc(key + bytes + 1, 1);
    extras->no_memory = extras->no_memory || !out->data;
    if (out->data) {
        memcpy(out->data, note->body.data, key);
        memcpy(out->data + key, text, bytes);
        out->bytes = key + bytes;
        extras->bytes += out->bytes;
    }
    tess_extras_drop(extras, &plain);
    return out->data != NULL;
}

static void take_text(tess_extras *out, const char *kind, tess_blob *body)
{
    const tess_note note = {{kind[0], kind[1], kind[2], kind[3], 0}, *body};
    tess_blob text = {0};
    const bool xmp = body->bytes > sizeof XMP_KEY && memcmp(body->data, XMP_KEY, sizeof XMP_KEY) == 0;
    if (!xmp) {
        tess_extras_note(out, kind, body);
        return;
    }
    if (!out->xmp.data && tess_png_note_text(out, &note, TESS_EXTRAS_MOST, &text)) {
        memmove(text.data, text.data + sizeof XMP_KEY, text.bytes - sizeof XMP_KEY + 1);
        text.bytes -= sizeof XMP_KEY;
        out->bytes -= sizeof XMP_KEY;
        out->xmp = text;
    }
    tess_extras_drop(out, body);
}

static void take_profile(tess_extras *out, tess_blob *body)
{
    const unsigned char *end = body->data + body->bytes, *at = after_zero(body->data, end);
    if (!out->icc.data && at && at - body->data <= (int)sizeof out->icc_name && at < end && at[0] == 0 &&
        tess_extras_inflate(out, at + 1, (size_t)(end - at) - 1, TESS_EXTRAS_MOST, &out->icc))
        memcpy(out->icc_name, body->data, (size_t)(at - body->data));
    tess_extras_drop(out, body);
}

/* Chunks without meaning in other formats, which say nothing of single pixels: a scale, position and levels. The last two
 * are older spellings of the two before. */
static bool is_carried(const char *kind)
{
    static const char *const carried[] = {"pCAL", "sCAL", "oFFs", "sTER", "mDCV", "cLLI", "mDCv", "cLLi"};
    for (size_t i = 0; i < sizeof carried / sizeof *carried; i++)
        if (strcmp(kind, carried[i]) == 0)
            return true;
    return false;
}

/* A second one of its kind would make the result invalid. */
static void take_carried(tess_extras *out, const char *kind, tess_blob *body)
{
    for (int i = 0; i < out->note_count; i++)
        if (strcmp(out->notes[i].kind, kind) == 0)
            return;
    tess_extras_note(out, kind, body);
}

void tess_png_carried_words(const tess_extras *extras, char *to, size_t size)
{
    size_t used = 0;
    to[0] = 0;
    for (int i = 0; i < extras->note_count && used < size; i++)
        if (is_carried(extras->notes[i].kind))
            used += (size_t)snprintf(to + used, size - used, "%s %s", used ? "," : "PNG chunks",
                                     extras->notes[i].kind);
}

static void take_chunk(tess_extras *out, const char *kind, tess_blob *body)
{
    if (strcmp(kind, "eXIf") == 0 && !out->exif.data && body->bytes >= 8) {
        out->exif = *body;
        *body = (tess_blob){0};
    } else if (strcmp(kind, "iCCP") == 0) {
        take_profile(out, body);
    } else if (strcmp(kind, "cICP") == 0 && body->bytes == sizeof out->codes) {
        memcpy(out->codes, body->data, sizeof out->codes);
        out->has_codes = true;
    } else if (strcmp(kind, "sRGB") == 0) {
        out->srgb = true;
    } else if (strcmp(kind, "gAMA") == 0 && body->bytes == 4) {
        out->gamma = big_endian(body->data) / 1e5;
    } else if (strcmp(kind, "cHRM") == 0 && body->bytes == 32) {
        out->has_primaries = true;
        for (int i = 0; i < 8; i++)
            out->primaries[i] = big_endian(body->data + 4 * i) / 1e5;
    } else if (strcmp(kind, "acTL") == 0 && body->bytes == 8) {
        out->frames = big_endian(body->data);
    } else if (strcmp(kind, "bKGD") == 0 && body->bytes <= sizeof out->background) {
        memcpy(out->background, body->data, body->bytes);
        out->background_bytes = (int)body->bytes;
    } else if (strcmp(kind, "pHYs") == 0 && body->bytes == 9) {
        out->density[0] = big_endian(body->data);
        out->density[1] = big_endian(body->data + 4);
        out->unit = body->data[8] == 1 ? TESS_DENSITY_METRE : TESS_DENSITY_ASPECT;
    } else if (strcmp(kind + 1, "TXt") == 0 || strcmp(kind, "tEXt") == 0) {
        take_text(out, kind, body);
    } else if (is_carried(kind)) {
        take_carried(out, kind, body);
    }
    tess_extras_drop(out, body);
}

bool tess_extras_background_fits(const tess_extras *extras, const tess_image_info *info)
{
    return extras->background_bytes == (info->channels < 3 ? 2 : 6) &&
           extras->background_depth == (info->dtype == TESS_U16 ? 16 : 8);
}

static bool is_wanted(const char *kind)
{
    static const char *const wanted[] = {"eXIf", "iCCP", "cICP", "sRGB", "gAMA", "cHRM",
                                         "acTL", "bKGD", "pHYs", "tEXt", "zTXt", "iTXt"};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (strcmp(kind, wanted[i]) == 0)
            return true;
    return is_carried(kind);
}

void tess_extras_from_png(FILE *file, tess_extras *out)
{
    enum { DEPTH_AT = 24 }; /* in the header, which is the first chunk */
    unsigned char head[8], sum[4];
    if (fseeko(file, DEPTH_AT, SEEK_SET) != 0)
        return;
    out->background_depth = fgetc(file);
    if (fseeko(file, 8, SEEK_SET) != 0)
        return;
    while (!out->no_memory && fread(head, 1, 8, file) == 8) {
        const uint32_t bytes = big_endian(head);
        const char kind[5] = {(char)head[4], (char)head[5], (char)head[6], (char)head[7], 0};
        tess_blob body = {0};
        if (bytes > INT32_MAX || strcmp(kind, "IEND") == 0)
            return;
        if (!is_wanted(kind)) {
            tess_foreign_chunk(&out->foreign, kind, bytes);
            if (fseeko(file, (off_t)bytes + 4, SEEK_CUR) != 0)
                return;
            continue;
        }
        if (!tess_extras_read(out, file, bytes, &body) || fread(sum, 1, 4, file) != 4) {
            tess_extras_drop(out, &body);
            return;
        }
        if (crc32(crc32(0, head + 4, 4), body.data, bytes) == big_endian(sum))
            take_chunk(out, kind, &body);
        else
            tess_extras_drop(out, &body);
    }
}
