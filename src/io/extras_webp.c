/* extras_webp.c: the extras of a WebP file, which is a RIFF of chunks: EXIF, "XMP " and ICCP; ANMF for each frame of an
 * animation. */
#define _XOPEN_SOURCE 700
#include <string.h>

#include "io/extras.h"

void tess_extras_from_webp(FILE *file, tess_extras *out)
{
    unsigned char head[12];
    if (fread(head, 1, 12, file) != 12 || memcmp(head + 8, "WEBP", 4) != 0)
        return;
    while (!out->no_memory && fread(head, 1, 8, file) == 8) {
        const uint32_t bytes =
            head[4] | (uint32_t)head[5] << 8 | (uint32_t)head[6] << 16 | (uint32_t)head[7] << 24;
        tess_blob *to = memcmp(head, "EXIF", 4) == 0   ? &out->exif
                        : memcmp(head, "XMP ", 4) == 0 ? &out->xmp
                        : memcmp(head, "ICCP", 4) == 0 ? &out->icc
                                                       : NULL;
        out->frames += memcmp(head, "ANMF", 4) == 0;
        const bool wanted = to && !to->data && bytes > 0;
        if (wanted ? !tess_extras_read(out, file, bytes, to) : fseeko(file, (off_t)bytes, SEEK_CUR) != 0)
            break;
        if (bytes % 2 == 1 && getc(file) == EOF)
            break;
    }
    if (out->icc.data)
        snprintf(out->icc_name, sizeof out->icc_name, "ICC profile");
}
