/* gdal_metadata.h: what a raster says about itself besides its samples (private to gdal*.c). */
#ifndef TESS_IO_GDAL_METADATA_H
#define TESS_IO_GDAL_METADATA_H

#include "io/gdal_api.h"

/* The PHOTOMETRIC of a TIFF: as the colours of `like` say, or by count when there is no `like`. */
const char *tess_gdal_photometric(GDALDatasetH like, const tess_image_info *info, const tess_extras *extras);
/* Fills says, and transform where there is one; masked and nodata are known. */
void tess_gdal_says(GDALDatasetH dataset, tess_image_info *info);
/* "NAME=value" was put there by a person or a program, and stays true of other samples. */
bool tess_gdal_is_tag(const char *item);
/* Whether the colours are red, green and blue, in whatever order. */
bool tess_gdal_has_rgb(GDALDatasetH dataset, const tess_image_info *info);
/* `like` may be NULL; alpha is marked in any case. What the driver cannot hold is left out silently. */
void tess_gdal_copy_metadata(GDALDatasetH like, GDALDatasetH to, const tess_image_info *info,
                             const char *driver, const tess_extras *extras);
/* Into a TIFF. False without memory. */
bool tess_gdal_set_extras(const tess_extras *extras, const tess_image_info *info, GDALDatasetH to);
/* Does once what carrying this dataset's georeference will need: PROJ and its database stay loaded. */
void tess_gdal_warm_georeference(GDALDatasetH dataset);

/* The description in an ENVI header: that of `like`, or the name of the target. GDAL would put the temporary's there. */
void tess_gdal_describe_envi(GDALDatasetH like, GDALDatasetH to, const char *target);

#endif
