/* gdal_says.c: which metadata a dataset has, so that a writer can report what its format cannot hold.
 *
 * Items that GDAL generates when it opens a file (statistics, the band names of an ENVI raster as tags of the
 * file) do not count, nor do items that are carried over as EXIF data. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "io/gdal_metadata.h"
#include "io/jpeg_probe.h"
#include "io/pnm_probe.h"

/* True for an item of the file or of a band that a person or a program set. */
bool tess_gdal_is_tag(const char *item)
{
    static const char *const left_out[] = {"STATISTICS_", "TIFFTAG_MINSAMPLE", "TIFFTAG_MAXSAMPLE", "EXIF_",
                                           "METADATATYPE="}; /* the last one promises IMD or IMAGERY */
    for (size_t i = 0; i < sizeof left_out / sizeof *left_out; i++)
        if (strncmp(item, left_out[i], strlen(left_out[i])) == 0)
            return false;
    return strchr(item, '=') != NULL;
}

/* `tiff` is as for tess_gdal_domains. */
static bool has_tags(GDALMajorObjectH object, const char *tiff)
{
    char **domains = tess_gdal_domains(object, tiff);
    const bool own = domains && *domains;
    tess_gdal.CSLDestroy(domains);
    if (own)
        return true;
    char **items = tess_gdal.GDALGetMetadata(object, NULL);
    for (; items && *items; items++)
        if (tess_gdal_is_tag(*items) && strncmp(*items, "AREA_OR_POINT=", 14) != 0 &&
            strncmp(*items, "TIFFTAG_", 8) != 0)
            return true;
    return false;
}

static unsigned band_says(GDALRasterBandH band, bool envi)
{
    int scaled = FALSE, moved = FALSE;
    const double scale = tess_gdal.GDALGetRasterScale(band, &scaled),
                 offset = tess_gdal.GDALGetRasterOffset(band, &moved);
    const char *unit = tess_gdal.GDALGetRasterUnitType(band), *name = tess_gdal.GDALGetDescription(band);
    char **categories = tess_gdal.GDALGetRasterCategoryNames(band);
    return ((scaled && scale != 1) || (moved && offset != 0) ? TESS_SAYS_SCALE : 0) |
           (unit && unit[0] ? TESS_SAYS_UNIT : 0) | (name && name[0] ? TESS_SAYS_NAMES : 0) |
           (categories && *categories ? TESS_SAYS_CATEGORIES : 0) |
           (!envi && has_tags(band, NULL) ? TESS_SAYS_TAGS
                                          : 0); /* ENVI's wavelengths are part of the names */
}

/* True when an ENVI header has fields that other formats have no place for. */
static bool has_fields(GDALDatasetH dataset)
{
    static const char *const usual[] = {"samples",
                                        "lines",
                                        "bands",
                                        "header_offset",
                                        "file_type",
                                        "data_type",
                                        "interleave",
                                        "byte_order",
                                        "map_info",
                                        "projection_info",
                                        "band_names",
                                        "description",
                                        "wavelength",
                                        "wavelength_units",
                                        "coordinate_system_string",
                                        "data_ignore_value",
                                        "geo_points",
                                        "x_start",
                                        "y_start",
                                        "default_bands",
                                        "data_gain_values",
                                        "data_offset_values",
                                        "class_names",
                                        "classes",
                                        "class_lookup"};
    char **items = tess_gdal.GDALGetMetadata(dataset, "ENVI");
    for (; items && *items; items++) {
        bool known = false;
        for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
            const size_t length = strlen(usual[i]);
            known = known || (strncmp(*items, usual[i], length) == 0 && (*items)[length] == '=');
        }
        if (!known)
            return true;
    }
    return false;
}

/* Integers whose file says that they have fewer bits than their type, or which sample is white, mean fractions of
 * that. */
void tess_gdal_find_maximum(GDALDatasetH dataset, const char *path, tess_image_info *info)
{
    const bool sign = info->dtype == TESS_I16 || info->dtype == TESS_I32;
    const char *driver = tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(dataset)),
               *stored = tess_gdal.GDALGetMetadataItem(tess_gdal.GDALGetRasterBand(dataset, 1), "NBITS",
                                                       "IMAGE_STRUCTURE");
    const bool jpeg = strcmp(driver, "JPEG") == 0;
    const int bits = stored ? atoi(stored) : 0, precision = jpeg ? tess_jpeg_precision(path) : 0,
              most = strcmp(driver, "PNM") == 0         ? tess_pnm_maximum(path)
                     : precision > 8 && precision <= 16 ? (1 << precision) - 1
                                                        : 0;
    const double maximum = most > 0 ? most : bits > sign ? exp2(bits - sign) - 1 : 0;
    if (info->full_scale == 1 || !(maximum >= 1) || info->labels)
        return;
    info->fractions = most > 0;
    info->full_scale = fmin(maximum, info->full_scale);
}

/* GDAL reads side files of satellites' scenes into domains of its own, and METADATATYPE says whose they are. A TIFF may have
 * such domains itself; those are tags. */
static bool has_satellite(GDALDatasetH dataset, bool tiff)
{
    char **facts = tess_gdal.GDALGetMetadata(dataset, "IMD"),
         **summary = tess_gdal.GDALGetMetadata(dataset, "IMAGERY");
    if (!(facts && *facts) && !(summary && *summary))
        return false;
    return !tiff || tess_gdal.GDALGetMetadataItem(dataset, "METADATATYPE", NULL) != NULL;
}

void tess_gdal_says(GDALDatasetH dataset, tess_image_info *info)
{
    const char *driver = tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(dataset));
    const char *projection = tess_gdal.GDALGetProjectionRef(dataset);
    info->says |= (info->has_nodata ? TESS_SAYS_NODATA : 0) |
                  (info->masked && !info->has_nodata ? TESS_SAYS_MASK : 0) |
                  (info->mask_band ? TESS_SAYS_MASK : 0);
    if (tess_gdal.GDALGetGeoTransform(dataset, info->transform) == CE_None)
        info->says |= TESS_SAYS_TRANSFORM;
    if (projection && projection[0])
        info->says |= TESS_SAYS_PROJECTION;
    if (tess_gdal.GDALGetGCPCount(dataset) > 0)
        info->says |= TESS_SAYS_POINTS;
    if (tess_gdal.GDALGetMetadata(dataset, "RPC"))
        info->says |= TESS_SAYS_RATIONAL;
    if (strcmp(driver, "GTiff") == 0 && has_tags(dataset, tess_gdal.GDALGetDescription(dataset)))
        info->says |= TESS_SAYS_TAGS;
    if (has_satellite(dataset, strcmp(driver, "GTiff") == 0))
        info->says |= TESS_SAYS_SATELLITE;
    int given = FALSE;
    info->scale = tess_gdal.GDALGetRasterScale(tess_gdal.GDALGetRasterBand(dataset, 1), &given);
    info->scale = given ? info->scale : 1;
    info->offset = tess_gdal.GDALGetRasterOffset(tess_gdal.GDALGetRasterBand(dataset, 1), &given);
    info->offset = given ? info->offset : 0;
    if (strcmp(driver, "ENVI") == 0 && has_fields(dataset))
        info->says |= TESS_SAYS_FIELDS;
    for (int b = 1; b <= info->channels; b++)
        info->says |= band_says(tess_gdal.GDALGetRasterBand(dataset, b), strcmp(driver, "ENVI") == 0);
    tess_gdal.CPLErrorReset();
}
