/* gdal_files.c: turns the rows written through GDAL into a finished file.
 *
 * GDAL's JPEG driver can only copy a finished dataset, so the rows first go to an uncompressed TIFF beside the
 * temporary file, which is removed with it in every case. EXIF data is added to closed files, since GDAL would
 * write only the part that it understands. ENVI rasters are described by a second file, which needs its own
 * name. */
#define _XOPEN_SOURCE 700
#include "io/gdal_files.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/temp.h"
#include "io/target.h"

static char *with_suffix(const char *name, const char *suffix)
{
    size_t bytes = strlen(name) + strlen(suffix) + 1;
    char *text = tess_small_alloc(bytes, 1);
    if (text)
        snprintf(text, bytes, "%s%s", name, suffix);
    return text;
}

bool tess_gdal_files_name(tess_gdal_files *files, const tess_create *create)
{
    files->driver = tess_gdal_driver_of(create->target);
    bool jpeg = strcmp(files->driver->name, "JPEG") == 0, envi = strcmp(files->driver->name, "ENVI") == 0;
    files->temp = tess_small_strdup(create->temp);
    files->target = tess_small_strdup(create->target);
    files->staging = jpeg ? with_suffix(create->temp, ".tif") : NULL;
    files->header = envi ? with_suffix(create->temp, ".hdr") : NULL;
    return files->temp && files->target && (!jpeg || files->staging) && (!envi || files->header);
}

void tess_gdal_files_free(tess_gdal_files *files)
{
    tess_small_free(files->temp);
    tess_small_free(files->target);
    tess_small_free(files->staging);
    tess_small_free(files->header);
    *files = (tess_gdal_files){0};
}

bool tess_gdal_files_tiff(const tess_gdal_files *files)
{
    return strcmp(files->driver->name, "GTiff") == 0;
}

tess_status tess_gdal_files_to_jpeg(const tess_gdal_files *files, GDALDatasetH dataset, tess_error *error)
{
    char **options = tess_gdal.CSLSetNameValue(NULL, "QUALITY", "95");
    GDALDriverH jpeg = tess_gdal.GDALGetDriverByName(files->driver->name);
    GDALDatasetH copy = tess_gdal.GDALCreateCopy(jpeg, files->temp, dataset, FALSE, options, NULL, NULL);
    tess_gdal.CSLDestroy(options);
    if (copy)
        tess_gdal.GDALClose(copy);
    if (!copy || tess_gdal.CPLGetLastErrorType() >= CE_Failure)
        return tess_gdal_fail_write(error);
    return TESS_OK;
}

/* Renames ENVI's header to its final name; the caller renames the raster itself right after. One raster at a
 * time: the header of one must exist when the next one looks for a free name. */
tess_status tess_gdal_place_header(const char *header, const char *target, tess_error *error)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    char *final = NULL;
    pthread_mutex_lock(&lock);
    tess_status status = tess_envi_header(target, &final, error);
    if (status == TESS_OK)
        status = tess_temp_place(header, final, error);
    pthread_mutex_unlock(&lock);
    tess_small_free(final);
    return status;
}

/* Writes the JPEG with its extras under the staging name, which is free by now. */
static tess_status insert_into_jpeg(const tess_gdal_files *files, tess_extras *extras,
                                    const tess_image_info *info, tess_error *error)
{
    unlink(files->staging);
    TESS_TRY(tess_jpeg_insert(files->temp, files->staging, extras, info, error));
    if (rename(files->staging, files->temp) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be written (%s)", strerror(errno));
    return TESS_OK;
}

tess_status tess_gdal_files_finish(const tess_gdal_files *files, tess_extras *extras,
                                   const tess_image_info *info, tess_error *error)
{
    if (files->header)
        TESS_TRY(tess_gdal_place_header(files->header, files->target, error));
    if (files->staging && extras->known)
        return insert_into_jpeg(files, extras, info, error);
    if (tess_gdal_files_tiff(files) && extras->exif.data)
        return tess_tiff_insert(files->temp, extras, error);
    return TESS_OK;
}
