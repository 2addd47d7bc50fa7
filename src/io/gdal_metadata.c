/* gdal_metadata.c: copies the georeference, nodata values, meanings of samples, and texts from one dataset to
 * another.
 *
 * Only metadata that stays true after restoring the samples is copied: never statistics, histograms or
 * overviews. When a driver cannot hold an item, its error is ignored: losing a tag must not lose the image. */
#include "io/gdal_metadata.h"

#include <stdio.h>
#include <string.h>

#include "io/gdal_void.h"

static GDALColorInterp meaning(GDALDatasetH dataset, int band)
{
    return tess_gdal.GDALGetRasterColorInterpretation(tess_gdal.GDALGetRasterBand(dataset, band));
}

void tess_gdal_find_rgb(GDALDatasetH dataset, tess_image_info *info)
{
    unsigned seen = 0;
    for (int b = 1; b <= info->channels - info->alpha; b++) {
        const GDALColorInterp colour = meaning(dataset, b);
        const int place = colour == GCI_RedBand     ? 0
                          : colour == GCI_GreenBand ? 1
                          : colour == GCI_BlueBand  ? 2
                                                    : 3;
        seen |= 1u << place;
        if (place < 3)
            info->order[place] = (short)(b - 1);
    }
    info->rgb = seen == 7;
    const GDALRasterBandH last = tess_gdal.GDALGetRasterBand(dataset, info->channels);
    const char *name = tess_gdal.GDALGetDescription(last);
    if (seen == 15 && info->channels == 4 && meaning(dataset, 4) == GCI_Undefined && !(name && name[0]))
        info->says |= TESS_SAYS_FOURTH;
}

/* The tag RGB only for bands in that order: GDAL does not write the meanings of other bands beside it. */
const char *tess_gdal_photometric(GDALDatasetH like, const tess_image_info *info, const tess_extras *extras)
{
    enum { MINISWHITE = 0, CMYK = 5 };
    const int colours = info->channels - info->alpha;
    const bool same = like && tess_gdal.GDALGetRasterCount(like) == info->channels;
    if (!same)
        return colours == 3 ? "RGB" : "MINISBLACK";
    if (colours == 4 && extras->photometric == CMYK && meaning(like, 1) == GCI_CyanBand)
        return "CMYK";
    if (colours == 1 && extras->photometric == MINISWHITE)
        return "MINISWHITE"; /* the samples are as they were */
    const bool rgb = colours >= 3 && meaning(like, 1) == GCI_RedBand && meaning(like, 2) == GCI_GreenBand &&
                     meaning(like, 3) == GCI_BlueBand;
    return rgb ? "RGB" : "MINISBLACK";
}

/* For a file or a band; `tiff` is as for tess_gdal_domains. Items that describe the samples are not copied; domains
 * are copied whole. */
static void copy_tags(GDALMajorObjectH like, GDALMajorObjectH to, const char *tiff)
{
    char **items = tess_gdal.GDALGetMetadata(like, NULL);
    for (; items && *items; items++) {
        const char *equal = strchr(*items, '=');
        char name[256];
        if (!tess_gdal_is_tag(*items) || (size_t)(equal - *items) >= sizeof name)
            continue;
        memcpy(name, *items, (size_t)(equal - *items));
        name[equal - *items] = '\0';
        tess_gdal.GDALSetMetadataItem(to, name, equal + 1, NULL);
    }
    char **domains = tess_gdal_domains(like, tiff);
    for (char **at = domains; at && *at; at++)
        tess_gdal.GDALSetMetadata(to, tess_gdal.GDALGetMetadata(like, *at), *at);
    tess_gdal.CSLDestroy(domains);
}

static bool is_of(GDALDatasetH dataset, const char *driver)
{
    return strcmp(tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(dataset)), driver) == 0;
}

static bool is_tiff(GDALDatasetH dataset)
{
    return is_of(dataset, "GTiff");
}

static void copy_rational(GDALDatasetH like, GDALDatasetH to)
{
    char **rational = tess_gdal.GDALGetMetadata(like, "RPC");
    if (rational)
        tess_gdal.GDALSetMetadata(to, rational, "RPC");
}

static void copy_items(GDALDatasetH like, GDALDatasetH to, const char *driver, bool profile)
{
    static const char *const items[][2] = {
        {"AREA_OR_POINT", NULL},
        {"TIFFTAG_XRESOLUTION", NULL},
        {"TIFFTAG_YRESOLUTION", NULL},
        {"TIFFTAG_RESOLUTIONUNIT", NULL},
        {"TIFFTAG_IMAGEDESCRIPTION", NULL},
        {"SOURCE_ICC_PROFILE", "COLOR_PROFILE"}, /* the last one is left out when extras have the profile */
    };
    const size_t count = sizeof items / sizeof *items - !profile;
    if (is_tiff(like) && is_tiff(to))
        copy_tags(like, to, tess_gdal.GDALGetDescription(like));
    for (size_t i = 0; i < count; i++) {
        const char *value = tess_gdal.GDALGetMetadataItem(like, items[i][0], items[i][1]);
        if (value)
            tess_gdal.GDALSetMetadataItem(to, items[i][0], value, items[i][1]);
    }
    copy_rational(like, to);
    char **envi = tess_gdal.GDALGetMetadata(like, "ENVI"); /* wavelengths and similar items */
    if (envi && strcmp(driver, "ENVI") == 0) {
        tess_gdal.GDALSetMetadata(to, envi, "ENVI");
        if (tess_gdal.GDALGetMetadataItem(like, "file_compression", "ENVI"))
            tess_gdal.GDALSetMetadataItem(to, "file_compression", "0", "ENVI"); /* of the result */
    }
}

/* Control points replace a transform and have their own projection. */
void tess_gdal_copy_georeference(GDALDatasetH like, GDALDatasetH to)
{
    double transform[6];
    const int points = tess_gdal.GDALGetGCPCount(like);
    if (points > 0) {
        tess_gdal.GDALSetGCPs2(to, points, tess_gdal.GDALGetGCPs(like), tess_gdal.GDALGetGCPSpatialRef(like));
        return;
    }
    if (tess_gdal.GDALGetGeoTransform(like, transform) == CE_None)
        tess_gdal.GDALSetGeoTransform(to, transform);
    OGRSpatialReferenceH projection =
        tess_gdal.GDALGetSpatialRef(like); /* with its epoch, which WKT has not */
    if (projection)
        tess_gdal.GDALSetSpatialRef(to, projection);
}

void tess_gdal_warm_georeference(GDALDatasetH dataset)
{
    const char *name = "/vsimem/tess-warm.tif";
    if (!tess_gdal.GDALGetSpatialRef(dataset) && !tess_gdal.GDALGetGCPSpatialRef(dataset))
        return;
    GDALDatasetH trial =
        tess_gdal.GDALCreate(tess_gdal.GDALGetDriverByName("GTiff"), name, 1, 1, 1, GDT_Byte, NULL);
    if (!trial)
        return;
    tess_gdal_copy_georeference(dataset, trial);
    tess_gdal.GDALClose(trial);
    tess_gdal.VSIUnlink(name);
}

/* The meaning of a sample: value * scale + offset, in units, or the name of a category. Valid only for the same
 * numbers. */
static void copy_meaning(GDALRasterBandH from, GDALRasterBandH to, const tess_image_info *info)
{
    const GDALDataType was = tess_gdal.GDALGetRasterDataType(from), is = tess_gdal.GDALGetRasterDataType(to);
    int given = FALSE;
    const bool same = was == is || (was == GDT_Float64 && is == GDT_Float32);
    if (!same && !info->same_numbers)
        return;
    const double scale = tess_gdal.GDALGetRasterScale(from, &given);
    if (given && scale != 1)
        tess_gdal.GDALSetRasterScale(to, scale);
    const double offset = tess_gdal.GDALGetRasterOffset(from, &given);
    if (given && offset != 0)
        tess_gdal.GDALSetRasterOffset(to, offset);
    const char *unit = tess_gdal.GDALGetRasterUnitType(from);
    if (unit && unit[0])
        tess_gdal.GDALSetRasterUnitType(to, unit);
    char **categories = tess_gdal.GDALGetRasterCategoryNames(from);
    if (same && categories && *categories)
        tess_gdal.GDALSetRasterCategoryNames(to, categories);
}

/* GDAL shows the wavelength of an ENVI band as part of its name, "red (650 Nanometers)". If it were written
 * like that, with the wavelength in the header too, the name would grow with each copy. */
static void copy_name(GDALRasterBandH from, GDALRasterBandH to, bool envi, GDALDatasetH to_file)
{
    const char *shown = tess_gdal.GDALGetDescription(from),
               *wavelength = tess_gdal.GDALGetMetadataItem(from, "wavelength", NULL),
               *unit = tess_gdal.GDALGetMetadataItem(from, "wavelength_units", NULL);
    char name[1024], tail[128];
    size_t length = (size_t)snprintf(name, sizeof name, "%s", shown ? shown : "");
    if (length == 0 || length >= sizeof name)
        return;
    const size_t ends = (size_t)snprintf(tail, sizeof tail, " (%s%s%s)", wavelength ? wavelength : "",
                                         unit ? " " : "", unit ? unit : "");
    while (envi && wavelength && ends < sizeof tail && length > ends &&
           strcmp(name + length - ends, tail) == 0)
        name[length -= ends] = '\0';
    for (char *mark = name; is_of(to_file, "ENVI") && (mark = strpbrk(mark, TESS_GDAL_MARKS)); mark++)
        *mark = *mark == ',' ? ';' : *mark == '{' ? '(' : *mark == '}' ? ')' : ' ';
    tess_gdal.GDALSetDescription(to, name);
}

static void copy_bands(GDALDatasetH like, GDALDatasetH to, const tess_image_info *info)
{
    for (int b = 1; b <= info->channels; b++) {
        GDALRasterBandH from = tess_gdal.GDALGetRasterBand(like, b),
                        band = tess_gdal.GDALGetRasterBand(to, b);
        int valid = FALSE;
        const double nodata = tess_gdal.GDALGetRasterNoDataValue(from, &valid);
        if (valid)
            tess_gdal.GDALSetRasterNoDataValue(band, tess_gdal_written_nodata(info, nodata));
        copy_name(from, band, is_of(like, "ENVI") && is_of(to, "ENVI"), to);
        copy_meaning(from, band, info);
        if (is_tiff(to))
            copy_tags(from, band, NULL);
    }
}

/* Called after the bands exist: a TIFF's photometric tag and its extra samples have already given each band a
 * meaning. Alpha is marked below, and a gray palette does not count. Formats without meanings have "undefined"
 * everywhere. */
static void copy_colours(GDALDatasetH like, GDALDatasetH to, const tess_image_info *info)
{
    for (int b = 1; b <= info->channels - info->alpha; b++) {
        const GDALColorInterp colour = meaning(like, b);
        if (colour != meaning(to, b) && colour != GCI_PaletteIndex &&
            (colour != GCI_Undefined || is_tiff(like)))
            tess_gdal.GDALSetRasterColorInterpretation(tess_gdal.GDALGetRasterBand(to, b), colour);
    }
}

static void mark_alpha(GDALDatasetH to, const tess_image_info *info)
{
    if (!info->alpha || meaning(to, info->channels) == GCI_AlphaBand)
        return;
    tess_gdal.CPLSetThreadLocalConfigOption("GTIFF_ALPHA", info->premultiplied ? "PREMULTIPLIED" : NULL);
    tess_gdal.GDALSetRasterColorInterpretation(tess_gdal.GDALGetRasterBand(to, info->channels),
                                               GCI_AlphaBand);
    tess_gdal.CPLSetThreadLocalConfigOption("GTIFF_ALPHA", NULL);
}

/* For values that `like` does not have, such as scores of its pixels. */
static void copy_place(GDALDatasetH like, GDALDatasetH to, unsigned unheld)
{
    const char *point = tess_gdal.GDALGetMetadataItem(like, "AREA_OR_POINT", NULL);
    if (!(unheld & TESS_SAYS_TRANSFORM))
        tess_gdal_copy_georeference(like, to);
    copy_rational(like, to);
    if (point)
        tess_gdal.GDALSetMetadataItem(to, "AREA_OR_POINT", point, NULL);
}

void tess_gdal_copy_metadata(GDALDatasetH like, GDALDatasetH to, const tess_image_info *info,
                             const char *driver, const tess_extras *extras)
{
    for (int b = 1; info->only_place && info->has_nodata && b <= info->channels; b++)
        tess_gdal.GDALSetRasterNoDataValue(tess_gdal.GDALGetRasterBand(to, b), info->nodata);
    if (like && info->only_place) {
        copy_place(like, to, extras->unheld);
    } else if (like) {
        if (!(extras->unheld & TESS_SAYS_TRANSFORM))
            tess_gdal_copy_georeference(like, to);
        copy_items(like, to, driver, !extras->known);
        if (tess_gdal.GDALGetRasterCount(like) == info->channels) {
            copy_bands(like, to, info);
            copy_colours(like, to, info);
        }
    } else if (info->says & TESS_SAYS_TRANSFORM & ~extras->unheld) {
        double transform[6];
        memcpy(transform, info->transform, sizeof transform);
        tess_gdal.GDALSetGeoTransform(to, transform);
    }
    mark_alpha(to, info);
    tess_gdal.CPLErrorReset();
}

void tess_gdal_describe_envi(GDALDatasetH like, GDALDatasetH to, const char *target)
{
    static const char EDGE[] = "{} \t\r\n";
    char text[1024];
    const char *slash = strrchr(target, '/');
    const char *given =
        like && is_of(like, "ENVI") ? tess_gdal.GDALGetMetadataItem(like, "description", "ENVI") : NULL;
    snprintf(text, sizeof text, "%s", given ? given + strspn(given, EDGE) : "");
    size_t length = strlen(text);
    while (length > 0 && strchr(EDGE, text[length - 1]))
        text[--length] = '\0';
    tess_gdal.GDALSetDescription(to, length > 0 ? text : slash ? slash + 1 : target);
}
