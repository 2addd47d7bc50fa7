/* gdal_metadata.h: what a raster says about itself besides its samples (private to gdal*.c). */
#ifndef TESS_IO_GDAL_METADATA_H
#define TESS_IO_GDAL_METADATA_H

#include "io/gdal_api.h"

/* The first three channels are red, green and blue: as `like` says, or by count when there is no `like`. */
bool tess_gdal_is_rgb(GDALDatasetH like, const tess_image_info *info);
/* `like` may be NULL; alpha is marked in any case. What the driver cannot hold is left out silently. */
void tess_gdal_copy_metadata(GDALDatasetH like, GDALDatasetH to, const tess_image_info *info,
                             const char *driver, const tess_extras *extras);
/* Into a TIFF. False without memory. */
bool tess_gdal_set_extras(const tess_extras *extras, const tess_image_info *info, GDALDatasetH to);
/* Does once what carrying this dataset's georeference will need: PROJ and its database stay loaded. */
void tess_gdal_warm_georeference(GDALDatasetH dataset);

#endif
