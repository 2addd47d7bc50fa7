/* The metadata that a writer takes from the file that is restored, and what of it the target cannot hold. */
#include <stdio.h>
#include <string.h>

#include "io/writer_impl.h"

/* Records the metadata of `like` that this target cannot hold. */
static void note_lost(tess_writer *writer, int orientation)
{
    static const struct {
        tess_says bit;
        const char *words;
    } parts[] = {{TESS_SAYS_TRANSFORM, "georeference"},
                 {TESS_SAYS_PROJECTION, "projection"},
                 {TESS_SAYS_POINTS, "control points"},
                 {TESS_SAYS_RATIONAL, "rational polynomials (RPC)"},
                 {TESS_SAYS_BESIDE_INKS, "alpha or other samples beside CMYK"},
                 {TESS_SAYS_NODATA, "nodata value"},
                 {TESS_SAYS_MASK, "mask"},
                 {TESS_SAYS_SCALE, "scale and offset"},
                 {TESS_SAYS_SCALES, "scales and offsets of the .aux.xml file"},
                 {TESS_SAYS_UNIT, "unit"},
                 {TESS_SAYS_NAMES, "band names"},
                 {TESS_SAYS_CATEGORIES, "category names"},
                 {TESS_SAYS_TAGS, "tags"},
                 {TESS_SAYS_FIELDS, "other fields of the ENVI header"},
                 {TESS_SAYS_WHITE, "meaning of 0 as white (so the result is a negative)"},
                 {TESS_SAYS_CHROMA, "full resolution of the colours (4:2:0 is written)"},
                 {TESS_SAYS_PROFILE, "colour profile"},
                 {TESS_SAYS_CODES, "colour space (cICP)"},
                 {TESS_SAYS_TEXTS, "texts"},
                 {TESS_SAYS_IPTC, "IPTC data"}};
    const tess_write_format *format = writer->format;
    /* A format for EXIF data has a place for a profile. */
    const bool exif = format->holds_exif && format->holds_exif(writer->target, &writer->extras);
    const bool jpeg = tess_suffix_is(writer->target, ".jpg") || tess_suffix_is(writer->target, ".jpeg") ||
                      tess_suffix_is(writer->target, ".jfif");
    const unsigned held =
                       (format->holds ? format->holds(writer->target, &writer->info) : 0) |
                       (jpeg ? 0 : TESS_SAYS_CHROMA) |
                       (exif && tess_extras_icc_fits(&writer->extras, &writer->info) ? TESS_SAYS_PROFILE : 0),
                   lost = writer->info.says & ~held;
    const bool upright = orientation == 1 || exif;
    const size_t size = sizeof writer->lost;
    size_t used = 0;
    if (!upright)
        used = (size_t)snprintf(writer->lost, size, "orientation %d of the EXIF data", orientation);
    if (writer->extras.frames > 1)
        used += (size_t)snprintf(writer->lost + used, size - used, "%sframes 2 to %u of the animation",
                                 used ? ", " : "", (unsigned)writer->extras.frames);
    for (size_t i = 0; i < sizeof parts / sizeof *parts && used < size; i++)
        if (lost & parts[i].bit)
            used +=
                (size_t)snprintf(writer->lost + used, size - used, "%s%s", used ? ", " : "", parts[i].words);
}

tess_status tess_writer_take_extras(tess_writer *writer, const tess_reader *like, tess_error *error)
{
    TESS_TRY(tess_extras_load(like->path, &writer->extras, error));
    for (int i = 0; i < writer->extras.note_count; i++) {
        const char *kind = writer->extras.notes[i].kind;
        writer->info.says |= strcmp(kind, "\xed") == 0 ? TESS_SAYS_IPTC
                             : strlen(kind) == 4       ? TESS_SAYS_TEXTS
                                                       : 0;
    }
    if (writer->info.foreign && writer->extras.more_samples)
        writer->info.says |= TESS_SAYS_BESIDE_INKS;
    if (writer->extras.icc.data)
        writer->info.says |= TESS_SAYS_PROFILE;
    if (writer->extras.has_codes)
        writer->info.says |= TESS_SAYS_CODES;
    note_lost(writer, tess_extras_orientation(&writer->extras));
    return TESS_OK;
}

const char *tess_writer_lost(const tess_writer *writer)
{
    return writer->lost[0] ? writer->lost : NULL;
}
