/* extras_jpeg.c: the extras of a JPEG: segments before the first scan, read and inserted as bytes. What lies behind the
 * image is only named (jpeg_behind.c).
 *
 *   APP0 "JFIF\0"         resolution         APP1 "Exif\0\0"                EXIF data, one segment
 *   APP2 "ICC_PROFILE\0"  in up to 255 parts APP1 "http://ns.adobe.com/..." XMP, one segment; more in "extension" parts
 *   APP2 "MPF\0"          other pictures     COM                            a comment
 *   APP13                 Photoshop, IPTC    others                         named (extras_foreign.c)
 *
 * GDAL writes EXIF data only from decoded items, without maker notes. So we copy its finished file and insert
 * our segments after its APP0. */
#define _XOPEN_SOURCE 700
#include <errno.h>
#include <math.h>
#include <string.h>

#include "io/extras.h"
#include "io/jpeg_probe.h"

enum {
    APP0 = 0xe0,
    APP1 = 0xe1,
    APP2 = 0xe2,
    APP13 = 0xed,
    APP15 = 0xef,
    COM = 0xfe,
    SOS = 0xda,
    SEGMENT = 65533
};

static const char EXIF[] = "Exif\0", XMP[] = "http://ns.adobe.com/xap/1.0/",
                  MORE_XMP[] = "http://ns.adobe.com/xmp/extension/", ICC[] = "ICC_PROFILE", MPF[] = "MPF";
enum { ICC_HEAD = sizeof ICC + 2, ICC_PART = SEGMENT - ICC_HEAD };

static bool begins(const tess_blob *body, const char *name, size_t bytes)
{
    return body->bytes >= bytes && memcmp(body->data, name, bytes) == 0;
}

/* Moves the bytes after the name into the blob. */
static void keep_tail(tess_extras *out, tess_blob *body, size_t name, tess_blob *to)
{
    if (to->data || body->bytes <= name)
        return;
    memmove(body->data, body->data + name, body->bytes - name + 1);
    body->bytes -= name;
    out->bytes -= name;
    *to = *body;
    *body = (tess_blob){0};
}

/* All files have the parts in order; a part out of order discards the profile. The bytes were read, so there is
 * room. */
static void take_profile(tess_extras *out, const tess_blob *body, int *next)
{
    const size_t bytes = body->bytes > ICC_HEAD ? body->bytes - ICC_HEAD : 0, before = out->icc.bytes;
    const bool fits = bytes > 0 && body->data[sizeof ICC] == *next;
    unsigned char *longer = fits ? tess_small_realloc(out->icc.data, before + bytes + 1, 1) : NULL;
    if (!longer) {
        out->no_memory = out->no_memory || fits;
        tess_extras_drop(out, &out->icc);
        *next = -1;
        return;
    }
    memcpy(longer + before, body->data + ICC_HEAD, bytes);
    longer[before + bytes] = 0;
    out->icc = (tess_blob){longer, before + bytes};
    out->bytes += bytes;
    *next = *next == body->data[sizeof ICC + 1] ? -1 : *next + 1;
}

/* Stores a comment as a PNG text chunk. UTF-8 needs the international kind (iTXt). */
static void take_comment(tess_extras *out, const tess_blob *body)
{
    tess_blob text;
    const size_t bytes = strlen((const char *)body->data);
    bool plain = true;
    for (size_t i = 0; i < bytes; i++)
        plain = plain && body->data[i] < 0x80;
    const char *head = plain ? "Comment" : "Comment\0\0\0\0";
    const size_t head_bytes = plain ? 8 : 12;
    if (bytes == 0 || !tess_extras_room(out, head_bytes + bytes, &text))
        return;
    memcpy(text.data, head, head_bytes);
    memcpy(text.data + head_bytes, body->data, bytes);
    tess_extras_note(out, plain ? "tEXt" : "iTXt", &text);
}

static void take_density(tess_extras *out, const tess_blob *body)
{
    if (!begins(body, "JFIF", 5) || body->bytes < 12)
        return;
    out->unit = body->data[7] == 1   ? TESS_DENSITY_INCH
                : body->data[7] == 2 ? TESS_DENSITY_CM
                                     : TESS_DENSITY_ASPECT;
    out->density[0] = body->data[8] << 8 | body->data[9];
    out->density[1] = body->data[10] << 8 | body->data[11];
}

static void take_segment(tess_extras *out, int marker, tess_blob *body, int *next_part)
{
    if (marker == APP0)
        take_density(out, body);
    else if (marker == APP1 && begins(body, EXIF, 6))
        keep_tail(out, body, 6, &out->exif);
    else if (marker == APP1 && begins(body, XMP, sizeof XMP))
        keep_tail(out, body, sizeof XMP, &out->xmp);
    else if (marker == APP1 && begins(body, MORE_XMP, sizeof MORE_XMP))
        tess_extras_note(out, "\xe1", body);
    else if (marker == APP2 && begins(body, ICC, sizeof ICC) && *next_part > 0)
        take_profile(out, body, next_part);
    else if (marker == APP2 && begins(body, MPF, sizeof MPF))
        tess_behind_from_mpf(body->data + sizeof MPF, body->bytes - sizeof MPF, &out->behind);
    else if (marker == APP13)
        tess_extras_note(out, "\xed", body);
    else if (marker == COM)
        take_comment(out, body);
    else
        tess_foreign_segment(&out->foreign, marker, body);
}

void tess_extras_from_jpeg(FILE *file, tess_extras *out)
{
    int length = 0, marker = 0, next_part = 1;
    if (getc(file) != 0xff || getc(file) != 0xd8)
        return;
    while (!out->no_memory && (marker = tess_jpeg_next_marker(file, &length)) != 0 && marker != SOS) {
        const bool wanted = (marker >= APP0 && marker <= APP15) || marker == COM;
        tess_blob body = {0};
        if (wanted ? !tess_extras_read(out, file, (size_t)length, &body)
                   : fseeko(file, length, SEEK_CUR) != 0)
            break;
        take_segment(out, marker, &body, &next_part);
        tess_extras_drop(out, &body);
    }
    if (marker == SOS)
        tess_behind_find(file, length, out);
    tess_xmp_forget_behind(&out->xmp);
    if (next_part > 1) /* the last part is missing */
        tess_extras_drop(out, &out->icc);
    if (out->icc.data)
        snprintf(out->icc_name, sizeof out->icc_name, "ICC profile");
}

/* --- writing --- */

static bool put(FILE *to, int marker, const void *head, size_t head_bytes, const void *body, size_t bytes)
{
    const size_t length = head_bytes + bytes + 2;
    return putc(0xff, to) != EOF && putc(marker, to) != EOF && putc((int)(length >> 8), to) != EOF &&
           putc((int)(length & 255), to) != EOF && fwrite(head, 1, head_bytes, to) == head_bytes &&
           fwrite(body, 1, bytes, to) == bytes;
}

static bool put_profile(FILE *to, const tess_blob *icc)
{
    const size_t parts = (icc->bytes + ICC_PART - 1) / ICC_PART;
    bool good = true;
    for (size_t i = 0; i < parts && parts <= 255 && good; i++) {
        const size_t rest = icc->bytes - i * ICC_PART;
        char head[ICC_HEAD];
        memcpy(head, ICC, sizeof ICC);
        head[sizeof ICC] = (char)(i + 1);
        head[sizeof ICC + 1] = (char)parts;
        good = put(to, APP2, head, sizeof head, icc->data + i * ICC_PART, rest < ICC_PART ? rest : ICC_PART);
    }
    return good;
}

static bool put_text(FILE *to, tess_extras *extras, const tess_note *note)
{
    tess_blob comment;
    const bool good =
        !tess_jpeg_comment(extras, note, &comment) || put(to, COM, "", 0, comment.data, comment.bytes);
    tess_extras_drop(extras, &comment);
    return good;
}

bool tess_jpeg_holds(const tess_extras *extras)
{
    return extras->exif.bytes <= SEGMENT - 6;
}

bool tess_jpeg_holds_xmp(const tess_extras *extras)
{
    return extras->xmp.bytes <= SEGMENT - sizeof XMP;
}

static bool put_all(FILE *to, tess_extras *extras, bool icc)
{
    bool good = true;
    if (extras->exif.data && tess_jpeg_holds(extras))
        good = put(to, APP1, EXIF, 6, extras->exif.data, extras->exif.bytes);
    if (good && extras->xmp.data && tess_jpeg_holds_xmp(extras))
        good = put(to, APP1, XMP, sizeof XMP, extras->xmp.data, extras->xmp.bytes);
    if (good && icc)
        good = put_profile(to, &extras->icc);
    for (int i = 0; good && i < extras->note_count; i++) {
        const tess_note *note = &extras->notes[i];
        const bool segment = (unsigned char)note->kind[0] >= 0x80;
        good = segment ? put(to, (unsigned char)note->kind[0], "", 0, note->body.data, note->body.bytes)
                       : !tess_note_is_text(note) || put_text(to, extras, note);
    }
    return good;
}

/* Writes whole numbers up to 65535: per inch, or per centimetre when only that is whole. */
static void set_density(const tess_extras *extras, unsigned char *jfif)
{
    double inch[2], cm[2];
    if (extras->unit == TESS_DENSITY_ASPECT) {
        inch[0] = extras->density[0];
        inch[1] = extras->density[1];
        jfif[7] = 0;
    } else if (tess_extras_density(extras, TESS_DENSITY_INCH, inch) &&
               tess_extras_density(extras, TESS_DENSITY_CM, cm)) {
        const bool metric = extras->unit != TESS_DENSITY_INCH && fabs(cm[0] - rint(cm[0])) < 1e-6 &&
                            fabs(cm[1] - rint(cm[1])) < 1e-6;
        if (metric)
            memcpy(inch, cm, sizeof inch);
        jfif[7] = metric ? 2 : 1;
    } else {
        return;
    }
    for (int i = 0; i < 2; i++) {
        const long value = inch[i] >= 1 && inch[i] < 65535.5 ? lrint(inch[i]) : 1;
        jfif[8 + 2 * i] = (unsigned char)(value >> 8);
        jfif[9 + 2 * i] = (unsigned char)(value & 255);
    }
}

/* Writes the library's first segment with our resolution, then our segments, then the rest unchanged, except a
 * profile. */
static bool copy_with(FILE *from, FILE *to, tess_extras *extras, bool icc)
{
    unsigned char body[SEGMENT + 3];
    int length = 0, marker;
    if (getc(from) != 0xff || getc(from) != 0xd8 || fwrite("\xff\xd8", 1, 2, to) != 2)
        return false;
    off_t start = ftello(from);
    bool done = false;
    while ((marker = tess_jpeg_next_marker(from, &length)) != 0) {
        if (marker < APP0 || marker > 0xef || length > SEGMENT ||
            fread(body, 1, (size_t)length, from) != (size_t)length)
            break;
        const bool jfif = marker == APP0 && length >= 14 && memcmp(body, "JFIF", 5) == 0;
        if (jfif)
            set_density(extras, body);
        if (!jfif && !done) {
            done = true;
            if (!put_all(to, extras, icc))
                return false;
        }
        const bool ours = icc && marker == APP2 && length > ICC_HEAD && memcmp(body, ICC, sizeof ICC) == 0;
        if (!ours && !put(to, marker, "", 0, body, (size_t)length))
            return false;
        start = ftello(from);
    }
    if (!done && !put_all(to, extras, icc))
        return false;
    if (fseeko(from, start, SEEK_SET) != 0)
        return false;
    for (size_t some; (some = fread(body, 1, sizeof body, from)) > 0;)
        if (fwrite(body, 1, some, to) != some)
            return false;
    return !ferror(from);
}

tess_status tess_jpeg_insert(const char *from, const char *to, tess_extras *extras,
                             const tess_image_info *info, tess_error *error)
{
    FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wbx") : NULL;
    bool good = out && copy_with(in, out, extras, tess_extras_icc_fits(extras, info));
    int why = errno;
    if (in)
        fclose(in);
    if (out && fclose(out) != 0 && good) {
        good = false;
        why = errno;
    }
    if (extras->no_memory)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for its EXIF data and texts");
    if (good)
        return TESS_OK;
    return tess_fail(error, TESS_IO_FAILED, "its EXIF data and profile cannot be written (%s)",
                     strerror(why));
}
