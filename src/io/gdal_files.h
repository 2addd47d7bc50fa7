/* gdal_files.h: the files that make up one image written through GDAL (private to gdal*.c). */
#ifndef TESS_IO_GDAL_FILES_H
#define TESS_IO_GDAL_FILES_H

#include "io/gdal_drivers.h"

typedef struct tess_gdal_files {
    const tess_gdal_driver *driver;
    char *temp, *target;
    char *staging; /* JPEG: the TIFF to which the rows are written; else NULL */
    char *header;  /* ENVI: the .hdr of the temporary file; else NULL */
} tess_gdal_files;

/* Returns false without memory; call tess_gdal_files_free in any case. */
bool tess_gdal_files_name(tess_gdal_files *files, const tess_create *create);
void tess_gdal_files_free(tess_gdal_files *files);
/* Renames the temporary header of an ENVI raster to that of `target`. */
tess_status tess_gdal_place_header(const char *header, const char *target, tess_error *error) TESS_MUST_CHECK;
/* True when the target is a TIFF. */
bool tess_gdal_files_tiff(const tess_gdal_files *files);
/* Copies the staging file, open as `dataset`, to a JPEG under the temporary name. */
tess_status tess_gdal_files_to_jpeg(const tess_gdal_files *files, GDALDatasetH dataset,
                                    tess_error *error) TESS_MUST_CHECK;
/* After the datasets are closed: renames the header to its final name, and adds the extras that GDAL does not
 * write. */
tess_status tess_gdal_files_finish(const tess_gdal_files *files, tess_extras *extras,
                                   const tess_image_info *info, tess_error *error) TESS_MUST_CHECK;

#endif
