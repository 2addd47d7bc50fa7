/* gdal_raster_output.c: begins an output: the work file under a temporary name, opened for update. */
#define _XOPEN_SOURCE 700
#include "io/gdal_raster_output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/gdal_files.h"
#include "io/gdal_metadata.h"
#include "io/raster_files.h"
#include "io/target.h"

/* Buffers that GDAL's copying of a whole raster takes besides the cache. */
enum { COPY_BUFFERS = 32 << 20 };

int CPL_STDCALL tess_raster_progress(double part, const char *text, void *stop)
{
    (void)part, (void)text;
    return !tess_stop_poll(stop);
}

void tess_raster_note(tess_raster_output *output, const char *text)
{
    const size_t length = strlen(output->notes);
    snprintf(output->notes + length, sizeof output->notes - length, "%s%s", length ? "; " : "", text);
}

void tess_raster_output_free(tess_raster_output *output)
{
    if (!output)
        return;
    if (output->dataset)
        tess_gdal.GDALClose(output->dataset);
    if (output->counted)
        tess_gdal_cache_share(output->raster->memory, -output->cache, -output->counted);
    if (output->options)
        tess_gdal.CSLDestroy(output->options);
    tess_temp_remove(output->temp);
    tess_small_free(output->path);
    tess_small_free(output->target);
    tess_small_free(output->result);
    tess_small_free(output->resampling);
    tess_small_free(output);
}

void tess_raster_output_abandon(tess_raster_output *output)
{
    tess_raster_lock();
    tess_raster_output_free(output);
    tess_raster_unlock();
}

/* What GDAL holds while overviews are rebuilt: rows of the full width, as floats with a mask, and their
 * smaller copies. */
static int64_t overview_bytes(const tess_raster_info *info)
{
    const int64_t rows = info->block_height < 16 || info->block_height > 256 ? 64 : info->block_height;
    const int64_t sample =
        info->dtype == TESS_F64 || info->dtype == TESS_U32 || info->dtype == TESS_I32 ? 8 : 4;
    return info->overviews > 0 ? info->width * (rows + 16) * (sample + 1) * 3 / 2 : 0;
}

static void measure(const tess_raster *raster, const tess_raster_way *way, tess_raster_bytes *bytes)
{
    const tess_raster_info *info = &raster->info;
    const int64_t image = info->height * info->width * info->bands * (int64_t)tess_dtype_size(info->dtype);
    const int64_t blocks = info->block_height * info->width * (int64_t)tess_dtype_size(info->dtype);
    bytes->held = (size_t)(raster->counted);
    bytes->commit = (size_t)overview_bytes(info);
    if (way->convert || !way->bytes) /* a result has blocks of at most 512 rows */
        bytes->commit +=
            COPY_BUFFERS + (size_t)tess_min_i64(tess_max_i64(blocks, info->width * 512 * 8), image);
    bytes->disk =
        (way->bytes ? raster->about.st_size : image + image / 2) + (way->convert ? image * 3 / 2 : 0);
}

static tess_status check_target(const tess_raster *raster, const char *path,
                                const tess_raster_target *settings, char **target, tess_raster_way *way,
                                tess_error *error)
{
    TESS_TRY(tess_target_resolve(path, target, error));
    tess_status status = TESS_OK;
    if (tess_image_same_target(path, raster->path) && !settings->overwrite)
        status = tess_fail(error, TESS_BAD_OPTION,
                           "is the input or a file beside it; name another output, or allow "
                           "it with `overwrite`");
    if (status == TESS_OK && settings->world != TESS_WORLD_NONE && !raster->info.has_transform)
        status = tess_fail(error, TESS_BAD_OPTION, "cannot have a world file: the input has no transform");
    if (status == TESS_OK)
        status = tess_raster_way_find(raster, *target, settings, way, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

tess_status tess_raster_output_plan(const tess_raster *raster, const char *path,
                                    const tess_raster_target *settings, tess_raster_bytes *bytes,
                                    tess_error *error)
{
    tess_raster_way way;
    char *target = NULL;
    tess_raster_lock();
    const tess_status status = check_target(raster, path, settings, &target, &way, error);
    if (status == TESS_OK)
        measure(raster, &way, bytes);
    tess_raster_unlock();
    tess_small_free(target);
    return status;
}

/* The work file as GDAL's copy. A nodata value from a side file is unknown to GDAL (pam.c). */
static tess_status copy_dataset(tess_raster_output *output, tess_stop *stop, tess_error *error)
{
    const tess_raster *raster = output->raster;
    char **options = tess_raster_work_options(raster, &output->way, &output->settings);
    tess_gdal.CPLErrorReset();
    tess_gdal_cache_share(raster->memory, 0, output->busy);
    tess_gdal.CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES");
    GDALDatasetH copy =
        tess_gdal.GDALCreateCopy(tess_gdal.GDALGetDriverByName("GTiff"), tess_temp_path(output->temp),
                                 raster->dataset, FALSE, options, tess_raster_progress, stop);
    tess_gdal.CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", NULL);
    tess_gdal.CSLDestroy(options);
    if (copy)
        tess_gdal.GDALClose(copy);
    tess_gdal_cache_share(raster->memory, 0, -output->busy);
    TESS_TRY(tess_stop_check(stop, error));
    return copy && tess_gdal.CPLGetLastErrorType() < CE_Failure ? TESS_OK : tess_gdal_fail_write(error);
}

static tess_status copy_bytes(tess_raster_output *output, tess_stop *stop, tess_error *error)
{
    const tess_raster *raster = output->raster;
    const char *temp = tess_temp_path(output->temp);
    TESS_TRY(tess_raster_copy_file(raster->path, temp, raster->about.st_size, stop, error));
    TESS_TRY(tess_raster_copy_sides(raster->path, temp, stop, error));
    if (strcmp(raster->info.driver, "ENVI") != 0)
        return TESS_OK;
    char *header = NULL, name[4096];
    struct stat about;
    TESS_TRY(tess_envi_header(raster->path, &header, error));
    snprintf(name, sizeof name, "%s.hdr", temp);
    const tess_status status = stat(header, &about) == 0
                                   ? tess_raster_copy_file(header, name, about.st_size, stop, error)
                                   : tess_fail(error, TESS_BAD_INPUT, "its header %s is not there", header);
    tess_small_free(header);
    return status;
}

/* The mask or alpha band in which filled pixels become valid. */
static void find_marks(tess_raster_output *output)
{
    const tess_raster_info *info = &output->raster->info;
    const int flags = tess_gdal.GDALGetMaskFlags(output->band);
    output->mark = output->raster->opaque;
    if (info->alpha) {
        output->marks = tess_gdal.GDALGetRasterBand(output->dataset, info->alpha);
    } else if (info->mask_band && !(flags & (GMF_NODATA | GMF_ALL_VALID))) {
        output->marks = tess_gdal.GDALGetMaskBand(output->band);
    }
}

/* What the file says only through files beside it is written into the work file of a conversion. */
static void complete(tess_raster_output *output)
{
    const tess_raster_info *info = &output->raster->info;
    double transform[6];
    int given = FALSE;
    if (info->has_transform && tess_gdal.GDALGetGeoTransform(output->dataset, transform) != CE_None)
        tess_gdal_copy_georeference(output->raster->dataset, output->dataset);
    (void)tess_gdal.GDALGetRasterNoDataValue(output->band, &given);
    if (info->has_nodata && !given)
        tess_gdal.GDALSetRasterNoDataValue(output->band, info->nodata);
    tess_gdal.CPLErrorReset();
}

static tess_status open_work(tess_raster_output *output, tess_error *error)
{
    const tess_raster_info *info = &output->raster->info;
    const char *const driver[] = {output->way.bytes ? info->driver : "GTiff", NULL};
    const bool tiff = strcmp(driver[0], "GTiff") == 0;
    const char *const options[] = {"IGNORE_COG_LAYOUT_BREAK=YES", NULL};
    tess_gdal.CPLErrorReset();
    output->dataset = tess_gdal.GDALOpenEx(tess_temp_path(output->temp), GDAL_OF_RASTER | GDAL_OF_UPDATE,
                                           driver, tiff ? options : NULL, NULL);
    if (!output->dataset || tess_gdal.GDALGetRasterCount(output->dataset) < info->band)
        return tess_gdal_fail(error, TESS_IO_FAILED, "cannot be updated");
    output->band = tess_gdal.GDALGetRasterBand(output->dataset, info->band);
    if (!output->way.bytes || output->way.convert)
        complete(output);
    find_marks(output);
    return TESS_OK;
}

static tess_status make_work(tess_raster_output *output, tess_stop *stop, tess_error *error)
{
    tess_raster *raster = output->raster;
    tess_raster_bytes bytes;
    measure(raster, &output->way, &bytes);
    TESS_TRY(tess_temp_create(output->target, &output->temp, error));
    const int64_t room = tess_raster_free_bytes(tess_temp_path(output->temp));
    if (output->way.bytes && !output->way.convert) /* holes of the input take no room */
        bytes.disk = tess_min_i64(bytes.disk, (int64_t)raster->about.st_blocks * 512);
    if (room >= 0 && bytes.disk > room && !(output->way.bytes && output->way.convert))
        return tess_fail(
            error, TESS_IO_FAILED, "cannot be written: it may need %.1f MiB, and the disk has %.1f MiB free",
            ceil((double)bytes.disk / (1 << 20) * 10) / 10, floor((double)room / (1 << 20) * 10) / 10);
    TESS_TRY(tess_gdal_have_room(TESS_GDAL_ROOM + raster->counted, error));
    tess_gdal_cache_share(raster->memory, raster->cache, raster->counted);
    output->cache = raster->cache;
    output->counted = raster->counted;
    output->busy = (int64_t)bytes.commit;
    TESS_TRY(tess_gdal_have_room(TESS_GDAL_ROOM + output->busy, error));
    TESS_TRY(output->way.bytes ? copy_bytes(output, stop, error) : copy_dataset(output, stop, error));
    if (output->way.lossy)
        tess_raster_note(output,
                         "the input's compression is lossy, so another was used to keep valid pixels");
    if (output->way.big)
        tess_raster_note(output, "written as BigTIFF, since it may grow beyond 4 GiB");
    return open_work(output, error);
}

static bool keep_settings(tess_raster_output *output, const char *path)
{
    const tess_raster_target *settings = &output->settings;
    output->path = tess_small_strdup(path);
    if (settings->resampling)
        output->resampling = tess_small_strdup(settings->resampling);
    if (output->way.convert) {
        output->result = tess_small_alloc(strlen(tess_temp_path(output->temp)) + 8, 1);
        if (output->result)
            sprintf(output->result, "%s.out", tess_temp_path(output->temp));
        output->options = tess_raster_result_options(output->raster, &output->way, output->target, settings);
    }
    return output->path && (!settings->resampling || output->resampling) &&
           (!output->way.convert || output->result);
}

static tess_status create(tess_raster_output *output, const char *path, tess_stop *stop, tess_error *error)
{
    const tess_raster_info *info = &output->raster->info;
    TESS_TRY(check_target(output->raster, path, &output->settings, &output->target, &output->way, error));
    output->height = info->height;
    output->width = info->width;
    output->rule = info->rule;
    output->scale = info->scale;
    output->offset = info->offset;
    tess_status status = make_work(output, stop, error);
    if (status == TESS_OK && !keep_settings(output, path))
        status = tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

tess_status tess_raster_output_create(tess_raster *raster, const char *path,
                                      const tess_raster_target *settings, tess_stop *stop,
                                      tess_raster_output **out, tess_error *error)
{
    *out = NULL;
    tess_raster_output *output = tess_small_alloc(1, sizeof *output);
    if (!output)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    output->raster = raster;
    output->settings = *settings;
    tess_raster_lock();
    const tess_status status = create(output, path, stop, error);
    if (status == TESS_OK)
        *out = output;
    else
        tess_raster_output_free(output);
    tess_raster_unlock();
    return status;
}
