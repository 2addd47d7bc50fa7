/* jpeg_texts.c: texts of a PNG as comments of a JPEG.
 *
 * Not all of them can be: a segment has 64 KB, and ImageMagick and older programs keep whole blocks of metadata in texts,
 * in hexadecimal ("Raw profile type exif"), which no reader of a JPEG would look for in a comment. Those are named. */
#include <stdio.h>
#include <string.h>

#include "io/extras.h"

enum { SEGMENT = 65533 };

static const char RAW[] = "Raw profile type ";

bool tess_note_is_text(const tess_note *note)
{
    return strcmp(note->kind + 1, "TXt") == 0 || strcmp(note->kind, "tEXt") == 0;
}

static bool is_raw(const tess_note *note)
{
    return note->body.bytes >= sizeof RAW && memcmp(note->body.data, RAW, sizeof RAW - 1) == 0;
}

/* "Title: text", or only the text of a "Comment". */
bool tess_jpeg_comment(tess_extras *extras, const tess_note *note, tess_blob *out)
{
    tess_blob text = {0};
    *out = (tess_blob){0};
    if (is_raw(note) || !tess_png_note_text(extras, note, SEGMENT, &text))
        return false;
    const char *key = (const char *)text.data, *value = key + strlen(key) + 1;
    const size_t bytes = text.bytes - (size_t)(value - key);
    char head[96] = "";
    if (strcmp(key, "Comment") != 0)
        snprintf(head, sizeof head, "%.79s: ", key);
    const size_t before = strlen(head);
    if (before + bytes <= SEGMENT) {
        out->data = tess_small_alloc(before + bytes + 1, 1);
        extras->no_memory = extras->no_memory || !out->data;
    }
    if (out->data) {
        memcpy(out->data, head, before);
        memcpy(out->data + before, value, bytes);
        out->bytes = before + bytes;
        extras->bytes += out->bytes;
    }
    tess_extras_drop(extras, &text);
    return out->data != NULL;
}

/* What a raw profile is; NULL: the file has the same in its own place, from which it is carried over. */
static const char *raw_name(const tess_extras *extras, const tess_note *note)
{
    static const char *const names[] = {"exif", "APP1", "xmp", "icc", "icm", "iptc", "8bim"};
    const char *kind = (const char *)note->body.data + sizeof RAW - 1; /* a zero follows the last byte */
    const bool held[] = {extras->exif.data, extras->exif.data, extras->xmp.data, extras->icc.data,
                         extras->icc.data};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(kind, names[i]) == 0)
            return i < sizeof held / sizeof *held && held[i] ? NULL : names[i];
    return "other";
}

void tess_jpeg_lost_texts(tess_extras *extras, char *to, size_t size)
{
    char raw[64] = "";
    bool unheld = false;
    for (int i = 0; i < extras->note_count; i++) {
        const tess_note *note = &extras->notes[i];
        tess_blob comment;
        const char *name = tess_note_is_text(note) && is_raw(note) ? raw_name(extras, note) : NULL;
        const size_t used = strlen(raw);
        if (name && !strstr(raw, name))
            snprintf(raw + used, sizeof raw - used, "%s%s", used ? ", " : "", name);
        if (!tess_note_is_text(note) || is_raw(note))
            continue;
        unheld = !tess_jpeg_comment(extras, note, &comment) || unheld;
        tess_extras_drop(extras, &comment);
    }
    snprintf(to, size, "%s%s%s%s%s", raw[0] ? "raw profiles in texts (" : "", raw, raw[0] ? ")" : "",
             raw[0] && unheld ? ", " : "", unheld ? "texts that are damaged or over 64 KB" : "");
}
