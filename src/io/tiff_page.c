/* tiff_page.c: finds TIFF files whose first page is a preview of a picture that lies elsewhere in the file.
 *
 * Cameras' raw files (DNG, NEF, ARW) are TIFF files: their first directory describes a preview, and the picture is in a
 * directory that the tag SubIFDs of the first one names; other programs write a thumbnail before the picture. GDAL reads
 * the first directory, so a job would process the preview without a word. Previews are marked (NewSubfileType), and a
 * subdirectory that is larger than the page is no overview of it, whatever the marks say. */
#include "io/tiff_page.h"

#include <string.h>

enum { SHORT = 3, LONG8 = 16, IFD8 = 18, MOST_TAGS = 4096, MOST_BELOW = 64 };
enum {
    SUBFILE_TYPE = 254,
    OLD_SUBFILE_TYPE = 255,
    WIDTH = 256,
    HEIGHT = 257,
    PHOTOMETRIC = 262,
    SUBDIRECTORIES = 330,
    DNG_VERSION = 50706
};
enum { OLD_REDUCED = 2, COLOUR_FILTER = 32803, LINEAR_RAW = 34892 };

static void take_tag(const tess_tiff *t, const unsigned char *entry, tess_tiff_page *out)
{
    const int field = t->wide ? 8 : 4;
    const uint64_t tag = tess_tiff_number(t, entry, 2), type = tess_tiff_number(t, entry + 2, 2);
    const uint64_t value = /* stored at the beginning of the field */
        tess_tiff_number(t, entry + 4 + field,
                         type == SHORT              ? 2
                         : type == LONG8 && t->wide ? 8
                                                    : 4);
    if (tag == SUBFILE_TYPE) {
        out->kind |= value;
    } else if (tag == OLD_SUBFILE_TYPE) {
        out->kind |= value == OLD_REDUCED ? TESS_TIFF_REDUCED : 0;
    } else if (tag == WIDTH) {
        out->width = value;
    } else if (tag == HEIGHT) {
        out->height = value;
    } else if (tag == PHOTOMETRIC) {
        out->raw = out->raw || value == COLOUR_FILTER || value == LINEAR_RAW;
    } else if (tag == DNG_VERSION) {
        out->raw = true;
    } else if (tag == SUBDIRECTORIES) {
        out->below_type = (uint16_t)type;
        out->below_count = tess_tiff_number(t, entry + 4, field);
        memcpy(out->below, entry + 4 + field, (size_t)field);
    }
}

bool tess_tiff_page_read(const tess_tiff *t, uint64_t *place, tess_tiff_page *out)
{
    const int head = t->wide ? 8 : 2, field = t->wide ? 8 : 4;
    const size_t entry = (size_t)(4 + 2 * field);
    unsigned char bytes[20];
    *out = (tess_tiff_page){.offset = *place};
    if (!tess_tiff_at(t, *place, bytes, (size_t)head))
        return false;
    const uint64_t count = tess_tiff_number(t, bytes, head);
    if (count > MOST_TAGS)
        return false;
    uint64_t at = *place + (uint64_t)head;
    for (uint64_t i = 0; i < count; i++, at += entry) {
        if (!tess_tiff_at(t, at, bytes, entry))
            return false;
        take_tag(t, bytes, out);
    }
    if (!tess_tiff_at(t, at, bytes, (size_t)field))
        return false;
    *place = tess_tiff_number(t, bytes, field);
    return true;
}

static double size_of(const tess_tiff_page *page)
{
    return (double)page->width * (double)page->height;
}

void tess_tiff_page_prefer(const tess_tiff_page *first, const tess_tiff_page *page, tess_tiff_page *full)
{
    const bool larger = size_of(page) > size_of(first);
    const bool picture = first->kind & TESS_TIFF_REDUCED ? larger || !(page->kind & TESS_TIFF_REDUCED)
                                                         : larger && page->number == 0;
    if (picture && !(page->kind & TESS_TIFF_MASK) && size_of(page) > size_of(full))
        *full = *page;
}

/* Looks at the subdirectories; damaged ones are left out. */
static void look_below(const tess_tiff *t, const tess_tiff_page *first, tess_tiff_page *full)
{
    const int bytes = first->below_type == LONG8 || first->below_type == IFD8 ? 8 : 4;
    const int field = t->wide ? 8 : 4;
    const bool inside = first->below_count <= (uint64_t)(field / bytes);
    const uint64_t list = tess_tiff_number(t, first->below, field);
    for (uint64_t i = 0; i < first->below_count && i < MOST_BELOW; i++) {
        unsigned char offset[8];
        const uint64_t at = i * (uint64_t)bytes;
        tess_tiff_page page;
        if (inside)
            memcpy(offset, first->below + at, (size_t)bytes);
        else if (list > t->bytes || !tess_tiff_at(t, list + at, offset, (size_t)bytes))
            return;
        uint64_t place = tess_tiff_number(t, offset, bytes);
        if (tess_tiff_page_read(t, &place, &page))
            tess_tiff_page_prefer(first, &page, full);
    }
}

tess_status tess_tiff_page_check(const tess_tiff *t, const tess_tiff_page *first, tess_tiff_page *full,
                                 tess_error *error)
{
    char how[160];
    look_below(t, first, full);
    if (size_of(full) == 0)
        return TESS_OK;
    if (first->raw || full->raw)
        snprintf(how, sizeof how,
                 "this is a camera's raw file: convert it to a 16-bit TIFF first, as darktable and dcraw -T "
                 "-6 do");
    else if (full->number > 0)
        snprintf(how, sizeof how, "extract it first: gdal_translate GTIFF_DIR:%lld:IN.tif OUT.tif",
                 (long long)full->number);
    else
        snprintf(how, sizeof how, "extract it first: gdal_translate GTIFF_DIR:off:%llu:IN.tif OUT.tif",
                 (unsigned long long)full->offset);
    return tess_fail(error, TESS_UNSUPPORTED,
                     "its first page is a preview of %llux%llu, and the picture itself of %llux%llu lies "
                     "elsewhere in the file; %s",
                     (unsigned long long)first->width, (unsigned long long)first->height,
                     (unsigned long long)full->width, (unsigned long long)full->height, how);
}
