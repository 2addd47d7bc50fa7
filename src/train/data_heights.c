/* Elevation maps among the files of a data set: any raster of one band that GDAL reads, as floats, NaN where there is no height. */
#include "train/data_images.h"

#include "base/checked.h"
#include "io/raster.h"

/* Each part of a file is read once or in small windows, so that GDAL needs no cache but for the block in work. */
static const tess_raster_settings plain = {.cache = 1};

tess_status tess_heights_describe(tess_memory *memory, tess_images_file *file, tess_error *error)
{
    tess_raster *raster = NULL;
    TESS_TRY(tess_raster_open(memory, file->path, &plain, &raster, error));
    const tess_raster_info *info = tess_raster_describe(raster);
    file->height = info->height;
    file->width = info->width;
    file->channels = 1;
    file->dtype = TESS_F32;
    file->held = info->held_bytes;
    tess_raster_close(raster);
    size_t bytes;
    if (!tess_mul_size((size_t)file->height, (size_t)file->width, &bytes) ||
        !tess_mul_size(bytes, sizeof(float), &bytes))
        return tess_fail(error, TESS_BAD_INPUT, "%s: is too large", file->path);
    return TESS_OK;
}

tess_status tess_heights_read(tess_memory *memory, const tess_images_file *file, tess_rect rect, int64_t rows,
                              double *strip, float *to, tess_stop *stop, tess_error *error)
{
    tess_raster *raster = NULL;
    TESS_TRY(tess_raster_open(memory, file->path, &plain, &raster, error));
    const tess_raster_info *info = tess_raster_describe(raster);
    tess_status status = TESS_OK;
    if (info->height != file->height || info->width != file->width)
        status = tess_fail(error, TESS_BAD_INPUT, "%s: was changed after the run began", file->path);
    for (int64_t y = 0; y < rect.height && status == TESS_OK; y += rows) {
        const int64_t some = tess_min_i64(rows, rect.height - y);
        status = tess_stop_check(stop, error);
        if (status == TESS_OK)
            status = tess_raster_read(raster, rect.y + y, rect.x, some, rect.width, strip, NULL, error);
        for (int64_t i = 0; i < some * rect.width && status == TESS_OK; i++)
            to[y * rect.width + i] = (float)strip[i];
    }
    tess_raster_close(raster);
    return status;
}
