/* gdal_metadata.c: georeference, nodata, what the values mean, and texts from one dataset to another.
 *
 * Only what stays true after restoring the samples is carried: never statistics, histograms or overviews. A
 * driver that cannot hold an item says so through an error that we drop: losing a tag must not lose the
 * image. */
#include "io/gdal_metadata.h"

#include <string.h>

static GDALColorInterp meaning(GDALDatasetH dataset, int band)
{
    return tess_gdal.GDALGetRasterColorInterpretation(tess_gdal.GDALGetRasterBand(dataset, band));
}

bool tess_gdal_is_rgb(GDALDatasetH like, const tess_image_info *info)
{
    if (info->channels - info->alpha < 3)
        return false;
    if (!like || tess_gdal.GDALGetRasterCount(like) < 3)
        return info->channels - info->alpha == 3;
    return meaning(like, 1) == GCI_RedBand && meaning(like, 2) == GCI_GreenBand &&
           meaning(like, 3) == GCI_BlueBand;
}

/* A TIFF's texts, and the items that a program put into it, go into a TIFF; what describes the samples does not. */
static void copy_tiff_items(GDALDatasetH like, GDALDatasetH to)
{
    static const char *const left_out[] = {"STATISTICS_", "TIFFTAG_MINSAMPLE", "TIFFTAG_MAXSAMPLE", "EXIF_"};
    char **items = tess_gdal.GDALGetMetadata(like, NULL);
    for (; items && *items; items++) {
        const char *equal = strchr(*items, '=');
        char name[256];
        bool keep = equal && (size_t)(equal - *items) < sizeof name;
        for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
            keep = keep && strncmp(*items, left_out[i], strlen(left_out[i])) != 0;
        if (!keep)
            continue;
        memcpy(name, *items, (size_t)(equal - *items));
        name[equal - *items] = '\0';
        tess_gdal.GDALSetMetadataItem(to, name, equal + 1, NULL);
    }
}

static bool is_tiff(GDALDatasetH dataset)
{
    return strcmp(tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(dataset)), "GTiff") == 0;
}

static void copy_items(GDALDatasetH like, GDALDatasetH to, const char *driver, bool profile)
{
    static const char *const items[][2] = {
        {"AREA_OR_POINT", NULL},
        {"TIFFTAG_XRESOLUTION", NULL},
        {"TIFFTAG_YRESOLUTION", NULL},
        {"TIFFTAG_RESOLUTIONUNIT", NULL},
        {"TIFFTAG_IMAGEDESCRIPTION", NULL},
        {"SOURCE_ICC_PROFILE", "COLOR_PROFILE"}, /* the last: left out when extras have it */
    };
    const size_t count = sizeof items / sizeof *items - !profile;
    if (is_tiff(like) && is_tiff(to))
        copy_tiff_items(like, to);
    for (size_t i = 0; i < count; i++) {
        const char *value = tess_gdal.GDALGetMetadataItem(like, items[i][0], items[i][1]);
        if (value)
            tess_gdal.GDALSetMetadataItem(to, items[i][0], value, items[i][1]);
    }
    char **rational = tess_gdal.GDALGetMetadata(like, "RPC");
    if (rational)
        tess_gdal.GDALSetMetadata(to, rational, "RPC");
    char **envi = tess_gdal.GDALGetMetadata(like, "ENVI"); /* wavelengths and the like */
    if (envi && strcmp(driver, "ENVI") == 0)
        tess_gdal.GDALSetMetadata(to, envi, "ENVI");
}

/* Control points take the place of a transform and have a projection of their own. */
static void copy_georeference(GDALDatasetH like, GDALDatasetH to)
{
    double transform[6];
    const int points = tess_gdal.GDALGetGCPCount(like);
    if (points > 0) {
        tess_gdal.GDALSetGCPs(to, points, tess_gdal.GDALGetGCPs(like), tess_gdal.GDALGetGCPProjection(like));
        return;
    }
    if (tess_gdal.GDALGetGeoTransform(like, transform) == CE_None)
        tess_gdal.GDALSetGeoTransform(to, transform);
    const char *projection = tess_gdal.GDALGetProjectionRef(like);
    if (projection && projection[0])
        tess_gdal.GDALSetProjection(to, projection);
}

void tess_gdal_warm_georeference(GDALDatasetH dataset)
{
    const char *projection = tess_gdal.GDALGetProjectionRef(dataset), *name = "/vsimem/tess-warm.tif";
    const char *of_points = tess_gdal.GDALGetGCPProjection(dataset);
    if (!(projection && projection[0]) && !(of_points && of_points[0]))
        return;
    GDALDatasetH trial =
        tess_gdal.GDALCreate(tess_gdal.GDALGetDriverByName("GTiff"), name, 1, 1, 1, GDT_Byte, NULL);
    if (!trial)
        return;
    copy_georeference(dataset, trial);
    tess_gdal.GDALClose(trial);
    tess_gdal.VSIUnlink(name);
}

/* What a sample means: value * scale + offset, in units, or the name of a category. True only of the same numbers. */
static void copy_meaning(GDALRasterBandH from, GDALRasterBandH to)
{
    const GDALDataType was = tess_gdal.GDALGetRasterDataType(from), is = tess_gdal.GDALGetRasterDataType(to);
    int given = FALSE;
    if (was != is && !(was == GDT_Float64 && is == GDT_Float32))
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
    if (categories && *categories)
        tess_gdal.GDALSetRasterCategoryNames(to, categories);
}

static void copy_bands(GDALDatasetH like, GDALDatasetH to, const tess_image_info *info)
{
    for (int b = 1; b <= info->channels; b++) {
        GDALRasterBandH from = tess_gdal.GDALGetRasterBand(like, b),
                        band = tess_gdal.GDALGetRasterBand(to, b);
        int valid = FALSE;
        double nodata = tess_gdal.GDALGetRasterNoDataValue(from, &valid);
        if (valid) /* doubles were read as floats: so is the value that marks them */
            tess_gdal.GDALSetRasterNoDataValue(band,
                                               info->dtype == TESS_F32 ? (double)(float)nodata : nodata);
        const char *name = tess_gdal.GDALGetDescription(from);
        if (name && name[0])
            tess_gdal.GDALSetDescription(band, name);
        copy_meaning(from, band);
    }
}

void tess_gdal_copy_metadata(GDALDatasetH like, GDALDatasetH to, const tess_image_info *info,
                             const char *driver, const tess_extras *extras)
{
    if (like) {
        copy_georeference(like, to);
        copy_items(like, to, driver, !extras->known);
        if (tess_gdal.GDALGetRasterCount(like) == info->channels)
            copy_bands(like, to, info);
    }
    GDALRasterBandH last = tess_gdal.GDALGetRasterBand(to, info->channels);
    if (info->alpha && tess_gdal.GDALGetRasterColorInterpretation(last) != GCI_AlphaBand)
        tess_gdal.GDALSetRasterColorInterpretation(last, GCI_AlphaBand);
    tess_gdal.CPLErrorReset();
}
