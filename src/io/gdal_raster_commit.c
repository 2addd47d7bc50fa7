/* gdal_raster_commit.c: turns the work file into the result and gives it its name.
 *
 * GDAL reports a full disk late, and in its last message, not in a return value: the message is checked after
 * each step. Files beside the raster are renamed first, the raster last. */
#define _XOPEN_SOURCE 700
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/trace.h"
#include "io/gdal_files.h"
#include "io/gdal_raster_output.h"
#include "io/pam.h"
#include "io/raster_files.h"
#include "io/world.h"

/* Statistics that a program stored in the file were those of the input's pixels. */
static void remove_statistics(tess_raster_output *output)
{
    static const char *const prefixes[] = {"STATISTICS_", "TIFFTAG_MINSAMPLE", "TIFFTAG_MAXSAMPLE"};
    GDALMajorObjectH objects[] = {output->band, output->dataset};
    for (size_t o = 0; o < sizeof objects / sizeof *objects; o++)
        for (bool found = true; found;) { /* the list changes with each removal */
            char **items = tess_gdal.GDALGetMetadata(objects[o], NULL);
            char name[128] = "";
            for (; items && *items && !name[0]; items++)
                for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
                    if (strncmp(*items, prefixes[i], strlen(prefixes[i])) == 0)
                        snprintf(name, sizeof name, "%.*s", (int)strcspn(*items, "="), *items);
            found = name[0] && tess_gdal.GDALSetMetadataItem(objects[o], name, NULL, NULL) == CE_None;
        }
    tess_gdal.CPLErrorReset();
}

static tess_status check_written(tess_error *error)
{
    return tess_gdal.CPLGetLastErrorType() < CE_Failure ? TESS_OK : tess_gdal_fail_write(error);
}

static tess_status convert(tess_raster_output *output, tess_stop *stop, tess_error *error)
{
    GDALDriverH driver = tess_gdal.GDALGetDriverByName(output->way.driver);
    tess_gdal.CPLErrorReset();
    tess_gdal.CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", "YES");
    GDALDatasetH copy = tess_gdal.GDALCreateCopy(driver, output->result, output->dataset, FALSE,
                                                 output->options, tess_raster_progress, stop);
    tess_gdal.CPLSetThreadLocalConfigOption("GDAL_TIFF_INTERNAL_MASK", NULL);
    if (copy)
        tess_gdal.GDALClose(copy);
    TESS_TRY(tess_stop_check(stop, error));
    return copy ? check_written(error) : tess_gdal_fail_write(error);
}

/* JPEG 2000 has no place for nodata values: GDAL programs keep them in a file beside it. */
static tess_status describe_jp2(tess_raster_output *output, tess_error *error)
{
    const char *temp = tess_temp_path(output->temp);
    const int bands = output->raster->info.bands;
    bool copied = false, any = false;
    if (strcmp(output->raster->info.driver, output->way.driver) == 0)
        TESS_TRY(tess_raster_copy_description(output->raster->path, temp, &copied, error));
    tess_nodata *values = copied ? NULL : tess_small_alloc((size_t)bands, sizeof *values);
    if (!copied && !values)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for %d bands", bands);
    for (int b = 0; values && b < bands; b++) {
        int given = FALSE;
        values[b].value =
            tess_gdal.GDALGetRasterNoDataValue(tess_gdal.GDALGetRasterBand(output->dataset, b + 1), &given);
        values[b].any = given;
        any |= values[b].any;
    }
    const tess_status status = any ? tess_pam_write(temp, bands, values, error) : TESS_OK;
    tess_small_free(values);
    return status;
}

/* What is beside a converted result: nothing of the input's files, unless both are TIFFs. */
static tess_status describe(tess_raster_output *output, tess_error *error)
{
    char name[PATH_MAX];
    if (strcmp(output->raster->info.driver, "GTiff") == 0 && strcmp(output->way.driver, "COG") == 0)
        return TESS_OK;
    snprintf(name, sizeof name, "%s.aux.xml", tess_temp_path(output->temp));
    (void)unlink(name);
    return strcmp(output->way.driver, "JP2OpenJPEG") == 0 ? describe_jp2(output, error) : TESS_OK;
}

static tess_status place_beside(tess_raster_output *output, tess_error *error)
{
    const char *temp = tess_temp_path(output->temp);
    char name[PATH_MAX];
    const bool envi = strcmp(output->way.driver, "ENVI") == 0, converted = output->way.convert;
    TESS_TRY(tess_raster_place_sides(temp, output->target,
                                     converted && strcmp(output->way.driver, "AAIGrid") != 0, error));
    snprintf(name, sizeof name, "%s.hdr", converted ? output->result : temp);
    if (envi)
        TESS_TRY(tess_gdal_place_header(name, output->target, error));
    snprintf(name, sizeof name, "%s.world", temp);
    const double *transform = output->raster->info.transform;
    switch (output->settings.world) {
    case TESS_WORLD_NONE:
        return TESS_OK;
    case TESS_WORLD_CENTRE:
        return tess_world_write(transform, name, output->target, error);
    case TESS_WORLD_CORNER:
        return tess_world_write_corner(transform, name, output->target, error);
    }
    return TESS_OK;
}

static tess_status finish(tess_raster_output *output, tess_stop *stop, tess_error *error)
{
    tess_gdal.CPLErrorReset();
    if (output->changed && !output->like) {
        TESS_TRY(tess_raster_overviews(output, stop, error));
        remove_statistics(output);
    }
    tess_gdal.GDALFlushCache(output->dataset);
    TESS_TRY(check_written(error));
    if (output->way.convert) {
        TESS_TRY(convert(output, stop, error));
        TESS_TRY(describe(output, error));
    }
    tess_gdal.GDALClose(output->dataset);
    output->dataset = NULL;
    TESS_TRY(check_written(error));
    TESS_TRY(tess_stop_check(stop, error));
    TESS_TRY(place_beside(output, error));
    return tess_temp_place(output->way.convert ? output->result : tess_temp_path(output->temp),
                           output->target, error);
}

tess_status tess_raster_output_commit(tess_raster_output *output, tess_stop *stop, char *notes, size_t room,
                                      tess_error *error)
{
    tess_raster_lock();
    tess_memory *memory = output->raster->memory;
    const int64_t busy = output->busy;
    const double start = tess_trace_begin(memory->trace);
    tess_gdal_cache_share(memory, 0, busy);
    tess_status status = finish(output, stop, error);
    tess_gdal_cache_share(memory, 0, -busy);
    tess_trace_end(memory->trace, TESS_TRACE_WRITE, "finish a file", start);
    if (status != TESS_OK)
        status = tess_fail_prefix(error, status, output->path);
    if (notes)
        snprintf(notes, room, "%s", output->notes);
    tess_raster_output_free(output);
    tess_raster_unlock();
    return status;
}
