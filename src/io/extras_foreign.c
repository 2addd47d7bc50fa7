/* extras_foreign.c: data for other programs in the head of a JPEG or between the chunks of a PNG: the temperatures of a
 * thermal camera, a camera's private data, the stretchable parts of a button.
 *
 * It is not carried over, because it may describe the old pixels and its layout is not known; but a user who replaces a file
 * must learn that it is lost. Not named is what only helps to show the old file: marks of encoders, thumbnails, signatures
 * of the old bytes, and what belongs to data behind the image, which is named by itself (jpeg_behind.c). */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "io/extras.h"

enum {
    APP0 = 0xe0,
    APP1 = 0xe1,
    APP2 = 0xe2,
    APP8 = 0xe8,
    APP10 = 0xea,
    APP11 = 0xeb,
    APP12 = 0xec,
    APP14 = 0xee,
    APP15 = 0xef
};

static bool lists(const char *names, const char *name)
{
    const size_t bytes = strlen(name);
    for (const char *at = names; (at = strstr(at, name)); at += bytes)
        if (at[bytes] == 0 || at[bytes] == ',') /* APP1 is not APP10 */
            return true;
    return false;
}

static void add(tess_foreign *to, const char *name, uint64_t bytes)
{
    const size_t used = strlen(to->names), room = sizeof to->names - used;
    to->bytes += bytes;
    if (lists(to->names, name) || lists(to->names, "..."))
        return;
    const bool last = room < strlen(name) + sizeof ", , ...";
    snprintf(to->names + used, room, "%s%s", used ? ", " : "", last ? "..." : name);
}

static bool is_known(int marker, const tess_blob *body)
{
    static const struct {
        int marker;
        const char *name; /* the body begins with it */
    } known[] = {{APP0, ""},
                 {APP1, "Exif"},
                 {APP1, "http://ns.adobe.com/"},
                 {APP2, "ICC_PROFILE"},
                 {APP2, "MPF"},
                 {APP2, "FPXR"},
                 {APP2, "urn:iso:std:iso:ts:21496:"} /* gain map */,
                 {APP8, "SPIFF"},
                 {APP10, "AROT"},
                 {APP12, "Ducky"},
                 {APP14, "Adobe"},
                 {APP15, "Q "} /* quality */};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (marker == known[i].marker &&
            strncmp((const char *)body->data, known[i].name, strlen(known[i].name)) == 0)
            return true;
    /* JUMBF: who made the picture and how (C2PA), signed with the old bytes */
    return marker == APP11 && body->bytes >= 16 && memcmp(body->data, "JP", 2) == 0 &&
           memcmp(body->data + 12, "jumb", 4) == 0;
}

void tess_foreign_segment(tess_foreign *to, int marker, const tess_blob *body)
{
    char name[8];
    bool filled = false;
    for (size_t i = 0; i < body->bytes && !filled; i++)
        filled = body->data[i] != 0;
    if (marker < APP0 || marker > APP15 || !filled || is_known(marker, body))
        return;
    if (marker == APP1 && body->bytes > 5 && memcmp(body->data, "FLIR", 5) == 0) {
        to->thermal += body->bytes;
        return;
    }
    snprintf(name, sizeof name, "APP%d", marker - APP0);
    add(to, name, body->bytes);
}

void tess_foreign_chunk(tess_foreign *to, const char *kind, uint64_t bytes)
{
    /* Of the pixels, of frames that are counted, or of encoders; sBIT and tIME would not be true of the result. */
    static const char *const known[] = {"tRNS", "sBIT", "hIST", "sPLT", "tIME", "fcTL",
                                        "fdAT", "iDOT", "vpAg", "caNv", "dSIG", "caBX"};
    for (int i = 0; i < 4; i++)
        if (!isalpha((unsigned char)kind[i]))
            return;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(kind, known[i]) == 0)
            return;
    if (islower(
            (unsigned char)kind[0])) /* others are needed to read the file, so that it would not have been */
        add(to, kind, bytes);
}

void tess_foreign_words(const tess_foreign *from, char *to, size_t size)
{
    char thermal[24], bytes[24];
    int used = 0;
    to[0] = 0;
    tess_extras_size(from->thermal, thermal, sizeof thermal);
    tess_extras_size(from->bytes, bytes, sizeof bytes);
    if (from->thermal)
        used = snprintf(to, size, "thermal data of a FLIR camera (%s)", thermal);
    if (from->names[0] && used >= 0 && (size_t)used < size)
        snprintf(to + used, size - (size_t)used, "%sdata of other programs (%s: %s)", used ? ", " : "",
                 from->names, bytes);
}
