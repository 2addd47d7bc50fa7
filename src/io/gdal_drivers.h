/* gdal_drivers.h: the formats that are written through GDAL (private to gdal*.c). */
#ifndef TESS_IO_GDAL_DRIVERS_H
#define TESS_IO_GDAL_DRIVERS_H

#include "io/gdal_api.h"

typedef struct tess_gdal_driver {
    const char *suffix, *name, *interleave;
    bool stripped; /* blocks have several rows */
} tess_gdal_driver;

/* Chosen by the suffix of the target. */
const tess_gdal_driver *tess_gdal_driver_of(const char *path);
GDALDataType tess_gdal_type_of(tess_dtype dtype);
size_t tess_gdal_row_bytes(const tess_image_info *info);
/* `cache`: bytes of GDAL's cache that a writer needs; `counted`: all bytes that it holds. */
void tess_gdal_measure(const char *target, const tess_image_info *info, int64_t *cache, int64_t *counted);
/* True when the mask of the image that was read is written too. */
bool tess_gdal_keeps_mask(const char *target, const tess_image_info *info);

/* As in tess_write_format. */
bool tess_gdal_only_rgb(const char *target);
tess_status tess_gdal_accepts(const char *target, const tess_image_info *info,
                              tess_error *error) TESS_MUST_CHECK;
size_t tess_gdal_held_bytes(const char *target, const tess_image_info *info);
unsigned tess_gdal_holds(const char *target, const tess_image_info *info);
bool tess_gdal_holds_exif(const char *target, const tess_extras *extras);

#endif
