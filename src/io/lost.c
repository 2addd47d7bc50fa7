/* lost.c: names the metadata of an input that its result cannot hold. */
#include <stdio.h>
#include <string.h>

#include "io/format.h"
#include "io/target.h"

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
             {TESS_SAYS_MARKS, "commas and braces of band names (; and parentheses are written)"},
             {TESS_SAYS_CATEGORIES, "category names"},
             {TESS_SAYS_TAGS, "tags"},
             {TESS_SAYS_SATELLITE, "satellite metadata of its side file (domains IMD, IMAGERY)"},
             {TESS_SAYS_FIELDS, "other fields of the ENVI header"},
             {TESS_SAYS_WHITE, "meaning of 0 as white (so the result is a negative)"},
             {TESS_SAYS_CHROMA, "full resolution of the colours (4:2:0 is written)"},
             {TESS_SAYS_PROFILE, "colour profile"},
             {TESS_SAYS_CODES, "colour space (cICP)"},
             {TESS_SAYS_GAMMA, "gamma and primaries"},
             {TESS_SAYS_TEXTS, "texts"},
             {TESS_SAYS_IPTC, "IPTC data"},
             {TESS_SAYS_MORE_XMP, "extended XMP"}};

/* What the file says, and what its extras say. */
static unsigned said_by(const tess_image_info *info, const tess_extras *extras)
{
    unsigned says = info->says | (extras->unheld & TESS_SAYS_MARKS);
    for (int i = 0; i < extras->note_count; i++) {
        const char *kind = extras->notes[i].kind;
        says |= strcmp(kind, "\xed") == 0              ? TESS_SAYS_IPTC
                : strcmp(kind, "\xe1") == 0            ? TESS_SAYS_MORE_XMP
                : tess_note_is_text(&extras->notes[i]) ? TESS_SAYS_TEXTS
                                                       : 0;
    }
    if (info->foreign && extras->more_samples)
        says |= TESS_SAYS_BESIDE_INKS;
    if (extras->icc.data)
        says |= TESS_SAYS_PROFILE;
    if (extras->has_codes)
        says |= TESS_SAYS_CODES;
    if (tess_extras_needs_profile(extras, info)) /* and none was made */
        says |= TESS_SAYS_GAMMA;
    return says;
}

/* `place`: the format has one for a profile. */
static bool holds_profile(const char *target, const tess_image_info *info, const tess_extras *extras,
                          bool place)
{
    return place && tess_extras_icc_fits(extras, info) &&
           (!tess_suffix_is(target, ".png") || tess_png_takes_profile(extras, info));
}

/* Of one that is lost. */
static const char *profile_words(const tess_image_info *info, const tess_extras *extras, bool place)
{
    return !place                                                          ? "colour profile"
           : extras->icc.bytes < 128 || tess_extras_icc_fits(extras, info) ? "colour profile (it is damaged)"
           : info->channels - info->alpha == 1 ? "colour profile (it does not fit a gray image)"
                                               : "colour profile (it is for other colours)";
}

typedef struct list {
    char *to;
    size_t size, used;
} list;

static void name(list *l, const char *words)
{
    if (words[0] && l->used < l->size)
        l->used += (size_t)snprintf(l->to + l->used, l->size - l->used, "%s%s", l->used ? ", " : "", words);
}

/* A JPEG whose one segment cannot hold the EXIF data has the XMP packet and the resolution. */
static void name_rest(list *l, const char *target, const tess_image_info *info, const tess_extras *extras,
                      bool exif, bool jpeg)
{
    double density[2];
    if (extras->exif.data && !exif)
        name(l, tess_extras_orientation(extras) != 1 ? "other EXIF data" : "EXIF data");
    if (extras->xmp.data && (jpeg ? !tess_jpeg_holds_xmp(extras) : !exif))
        name(l, "XMP packet");
    if (tess_extras_density(extras, TESS_DENSITY_INCH, density) && !exif && !jpeg)
        name(l, "resolution");
    if (extras->background_bytes &&
        !(tess_suffix_is(target, ".png") && tess_extras_background_fits(extras, info)))
        name(l, "background colour (bKGD)");
}

void tess_lost_name(const tess_write_format *format, const char *target, const tess_image_info *info,
                    tess_extras *extras, char *to, size_t size)
{
    list l = {to, size, 0};
    /* A format for EXIF data has a place for a profile. */
    const bool exif = format->holds_exif && format->holds_exif(target, extras);
    const bool jpeg =
        tess_suffix_is(target, ".jpg") || tess_suffix_is(target, ".jpeg") || tess_suffix_is(target, ".jfif");
    const unsigned held = (format->holds ? format->holds(target, info) : 0) | (jpeg ? 0 : TESS_SAYS_CHROMA) |
                          (holds_profile(target, info, extras, exif) ? TESS_SAYS_PROFILE : 0),
                   lost = said_by(info, extras) & (~held | extras->unheld);
    const int orientation = tess_extras_orientation(extras);
    char words[160] = "";
    if (orientation != 1 && !exif)
        snprintf(words, sizeof words, "orientation %d of the EXIF data", orientation);
    name(&l, words);
    words[0] = 0;
    if (extras->frames > 1)
        snprintf(words, sizeof words,
                 extras->frames > 2 ? "frames 2 to %u of the animation" : "frame %u of the animation",
                 (unsigned)extras->frames);
    name(&l, words);
    tess_behind_words(&extras->behind, words, sizeof words);
    name(&l, words);
    tess_private_words(extras, words, sizeof words);
    name(&l, words);
    tess_foreign_words(&extras->foreign, words, sizeof words);
    name(&l, words);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (lost & parts[i].bit)
            name(&l, parts[i].bit == TESS_SAYS_PROFILE ? profile_words(info, extras, exif) : parts[i].words);
    if (!tess_suffix_is(target, ".png")) {
        tess_png_carried_words(extras, words, sizeof words);
        name(&l, words);
    }
    if (jpeg) {
        tess_jpeg_lost_texts(extras, words, sizeof words);
        name(&l, words);
    }
    name_rest(&l, target, info, extras, exif, jpeg);
}
