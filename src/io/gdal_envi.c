/* GDAL has parsed the header and shows its fields as metadata of the domain "ENVI", so there is no second parser. */
#define _XOPEN_SOURCE 700
#include "io/gdal_envi.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/checked.h"

const char *tess_gdal_envi_field(GDALDatasetH dataset, const char *name)
{
    const char *text = tess_gdal.GDALGetMetadataItem(dataset, name, "ENVI");
    return text ? text : "";
}

static bool is_envi(GDALDatasetH dataset)
{
    return strcmp(tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(dataset)), "ENVI") == 0;
}

tess_status tess_gdal_envi_array(GDALDatasetH dataset, tess_envi_array *array, tess_error *error)
{
    static const struct {
        const char *interleave, *order;
    } orders[] = {{"bsq", "CHW"}, {"bil", "HCW"}, {"bip", "HWC"}};
    *array = (tess_envi_array){0};
    const bool big = strtol(tess_gdal_envi_field(dataset, "byte_order"), NULL, 10) != 0;
    const char *interleave = tess_gdal_envi_field(dataset, "interleave");
    if (!is_envi(dataset) || strtol(tess_gdal_envi_field(dataset, "file_compression"), NULL, 10) != 0)
        return TESS_OK;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        if (strncasecmp(interleave, orders[i].interleave, 3) == 0)
            array->order = orders[i].order;
    if (!array->order && interleave[0])
        return tess_fail(error, TESS_BAD_INPUT, "its header says interleave %.40s; expected bsq, bil or bip",
                         interleave);
    array->offset = strtoll(tess_gdal_envi_field(dataset, "header_offset"), NULL, 10);
    array->swapped = big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return TESS_OK;
}

tess_status tess_gdal_envi_size(GDALDatasetH dataset, const char *path, tess_error *error)
{
    const int height = tess_gdal.GDALGetRasterYSize(dataset), width = tess_gdal.GDALGetRasterXSize(dataset),
              bands = tess_gdal.GDALGetRasterCount(dataset);
    tess_envi_array array;
    struct stat about;
    if (bands < 1 || !is_envi(dataset))
        return TESS_OK;
    const GDALDataType type = tess_gdal.GDALGetRasterDataType(tess_gdal.GDALGetRasterBand(dataset, 1));
    TESS_TRY(tess_gdal_envi_array(dataset, &array, error));
    int64_t bytes = tess_gdal.GDALGetDataTypeSizeBytes(type);
    if (!array.order || stat(path, &about) != 0 || !tess_mul_i64(bytes, height, &bytes) ||
        !tess_mul_i64(bytes, width, &bytes) || !tess_mul_i64(bytes, bands, &bytes) ||
        !tess_add_i64(bytes, array.offset, &bytes) || bytes == about.st_size ||
        (bytes < about.st_size && (bands == 1 || strcmp(array.order, "CHW") != 0)))
        return TESS_OK;
    return tess_fail(
        error, TESS_BAD_INPUT,
        "its header says %d x %d x %d samples of %s after %lld bytes, which are %lld bytes, but the file "
        "has %lld; correct the header or copy the file again",
        height, width, bands, tess_gdal.GDALGetDataTypeName(type), (long long)array.offset, (long long)bytes,
        (long long)about.st_size);
}
