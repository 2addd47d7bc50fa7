/* gdal_raster_like.c: a new raster on the grid of another, for a second result such as a standard deviation.
 *
 * It is a tiled GeoTIFF of floats whose blocks take no room on the disk until something is written to them. */
#define _XOPEN_SOURCE 700
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "io/gdal_metadata.h"
#include "io/gdal_raster_output.h"
#include "io/target.h"

enum { BLOCK = 256 };

static int64_t cache_of(const tess_raster_info *info)
{
    const int64_t block = BLOCK * BLOCK * (int64_t)sizeof(float);
    const tess_raster_blocks blocks = {.block = block,
                                       .row = tess_ceil_div(info->width, BLOCK) * block,
                                       .height = BLOCK,
                                       .image = info->height * info->width * (int64_t)sizeof(float)};
    return tess_raster_cache_for(&blocks);
}

size_t tess_raster_like_bytes(const tess_raster *raster)
{
    return (size_t)(cache_of(&raster->info) + 2 * BLOCK * BLOCK * (int64_t)sizeof(float));
}

static tess_status create(tess_raster_output *output, const char *description, tess_error *error)
{
    const tess_raster *raster = output->raster;
    TESS_TRY(tess_temp_create(output->target, &output->temp, error));
    char **options = tess_gdal.CSLSetNameValue(NULL, "TILED", "YES");
    options = tess_gdal.CSLSetNameValue(options, "BIGTIFF", "IF_SAFER");
    options = tess_gdal.CSLSetNameValue(options, "SPARSE_OK", "TRUE");
    tess_gdal.CPLErrorReset();
    output->dataset =
        tess_gdal.GDALCreate(tess_gdal.GDALGetDriverByName("GTiff"), tess_temp_path(output->temp),
                             (int)output->width, (int)output->height, 1, GDT_Float32, options);
    tess_gdal.CSLDestroy(options);
    if (!output->dataset)
        return tess_gdal_fail(error, TESS_IO_FAILED, "cannot be written");
    output->cache = cache_of(&raster->info);
    output->counted = (int64_t)tess_raster_like_bytes(raster);
    tess_gdal_cache_share(raster->memory, output->cache, output->counted);
    output->band = tess_gdal.GDALGetRasterBand(output->dataset, 1);
    tess_gdal_copy_georeference(raster->dataset, output->dataset);
    const char *point = tess_gdal.GDALGetMetadataItem(raster->dataset, "AREA_OR_POINT", NULL);
    const char *unit = tess_gdal.GDALGetRasterUnitType(raster->band);
    if (point)
        tess_gdal.GDALSetMetadataItem(output->dataset, "AREA_OR_POINT", point, NULL);
    if (unit && unit[0])
        tess_gdal.GDALSetRasterUnitType(output->band, unit);
    tess_gdal.GDALSetRasterNoDataValue(output->band, (double)NAN);
    tess_gdal.GDALSetDescription(output->band, description);
    tess_gdal.CPLErrorReset();
    return TESS_OK;
}

tess_status tess_raster_like(tess_raster *raster, const char *path, const char *description,
                             tess_raster_output **out, tess_error *error)
{
    const double nan_value = (double)NAN;
    *out = NULL;
    tess_raster_output *output = tess_small_alloc(1, sizeof *output);
    if (!output || !(output->path = tess_small_strdup(path))) {
        tess_small_free(output);
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    }
    output->raster = raster;
    output->like = true;
    output->height = raster->info.height;
    output->width = raster->info.width;
    output->scale = 1;
    output->way.driver = "GTiff";
    output->rule = tess_void_rule_make(TESS_F32, 0, TESS_NODATA_OF_FILE, 0, &nan_value);
    tess_status status = tess_target_resolve(path, &output->target, error);
    tess_raster_lock();
    if (status == TESS_OK) {
        if (!tess_suffix_is(path, ".tif") && !tess_suffix_is(path, ".tiff"))
            status = tess_fail(error, TESS_BAD_OPTION, "is written as GeoTIFF; name it .tif");
        else if (tess_image_same_target(path, raster->path))
            status =
                tess_fail(error, TESS_BAD_OPTION, "is the input or a file beside it; name another output");
        else
            status = create(output, description, error);
        if (status != TESS_OK)
            status = tess_fail_prefix(error, status, path);
    }
    if (status == TESS_OK)
        *out = output;
    else
        tess_raster_output_free(output);
    tess_raster_unlock();
    return status;
}
