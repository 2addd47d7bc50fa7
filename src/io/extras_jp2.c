/* extras_jp2.c: the extras of a JPEG 2000 file, which is a list of boxes: EXIF data and the XMP packet in boxes that a
 * UUID marks, the colour profile in the box colr of the header jp2h. */
#define _XOPEN_SOURCE 700
#include <string.h>

#include "io/extras.h"

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | at[i];
    return value;
}

/* Reads the head of a box: its kind, and the bytes that follow the head, UINT64_MAX for all the rest. */
static bool next_box(FILE *file, char kind[4], uint64_t *bytes)
{
    unsigned char head[8];
    if (fread(head, 1, 8, file) != 8)
        return false;
    memcpy(kind, head + 4, 4);
    *bytes = number(head, 4);
    if (*bytes == 0) {
        *bytes = UINT64_MAX;
        return true;
    }
    const uint64_t used = *bytes == 1 ? 16 : 8;
    if (*bytes == 1) {
        if (fread(head, 1, 8, file) != 8)
            return false;
        *bytes = number(head, 8);
    }
    if (*bytes < used)
        return false;
    *bytes -= used;
    return true;
}

static void read_uuid(FILE *file, uint64_t bytes, tess_extras *out)
{
    static const unsigned char exif[] = "JpgTiffExif->JP2",
                               xmp[] = {0xbe, 0x7a, 0xcf, 0xcb, 0x97, 0xa9, 0x42, 0xe8,
                                        0x9c, 0x71, 0x99, 0x94, 0x91, 0xe3, 0xaf, 0xac};
    unsigned char id[16];
    if (bytes <= sizeof id || bytes > out->limit || fread(id, 1, sizeof id, file) != sizeof id)
        return;
    tess_blob *to = memcmp(id, exif, sizeof id) == 0  ? &out->exif
                    : memcmp(id, xmp, sizeof id) == 0 ? &out->xmp
                                                      : NULL;
    if (to && !to->data)
        (void)tess_extras_read(out, file, (size_t)bytes - sizeof id, to);
}

/* A box colr has a method (2: a profile follows), a precedence and an approximation. */
static void read_colours(FILE *file, uint64_t bytes, tess_extras *out)
{
    unsigned char head[3];
    if (bytes <= sizeof head || bytes > out->limit || fread(head, 1, sizeof head, file) != sizeof head ||
        head[0] != 2 || out->icc.data)
        return;
    if (tess_extras_read(out, file, (size_t)bytes - sizeof head, &out->icc))
        snprintf(out->icc_name, sizeof out->icc_name, "ICC profile");
}

void tess_extras_from_jp2(FILE *file, tess_extras *out)
{
    char kind[4];
    uint64_t bytes;
    while (!out->no_memory && next_box(file, kind, &bytes)) {
        const off_t here = ftello(file);
        if (memcmp(kind, "jp2h", 4) == 0)
            continue; /* the boxes in it follow */
        if (memcmp(kind, "uuid", 4) == 0)
            read_uuid(file, bytes, out);
        else if (memcmp(kind, "colr", 4) == 0)
            read_colours(file, bytes, out);
        if (here < 0 || bytes > INT64_MAX - (uint64_t)here ||
            fseeko(file, here + (off_t)bytes, SEEK_SET) != 0)
            return;
    }
}
