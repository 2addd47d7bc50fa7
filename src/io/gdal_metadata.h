/* gdal_metadata.h: metadata of a raster (private to gdal*.c). */
#ifndef TESS_IO_GDAL_METADATA_H
#define TESS_IO_GDAL_METADATA_H

#include "io/gdal_api.h"

/* What an ENVI header has no place for in the name of a band. */
#define TESS_GDAL_MARKS ",{}\r\n"

/* The PHOTOMETRIC option of a TIFF: from the colours of `like`, or from the number of channels when `like` is
 * NULL. */
const char *tess_gdal_photometric(GDALDatasetH like, const tess_image_info *info, const tess_extras *extras);
/* Sets `says`, and `transform` if there is one; `masked` and `nodata` must be set. */
void tess_gdal_says(GDALDatasetH dataset, tess_image_info *info);
/* Lowers info->full_scale to the maximum that the file states, and sets info->fractions. */
void tess_gdal_find_maximum(GDALDatasetH dataset, const char *path, tess_image_info *info);
/* True when "NAME=value" was set by a person or a program and stays true for other samples. */
bool tess_gdal_is_tag(const char *item);
/* The domains of a file or band whose items a person or a program set; free with CSLDestroy. `tiff`: the name of the
 * file, if the object is a TIFF; NULL for a band. */
char **tess_gdal_domains(GDALMajorObjectH object, const char *tiff);
/* Sets info->rgb and info->order. */
void tess_gdal_find_rgb(GDALDatasetH dataset, tess_image_info *info);
/* `like` may be NULL; alpha is marked in any case. Items that the driver cannot hold are silently left out. */
void tess_gdal_copy_metadata(GDALDatasetH like, GDALDatasetH to, const tess_image_info *info,
                             const char *driver, const tess_extras *extras);
/* What an ENVI header would hold wrongly of this raster: tess_write_format. */
unsigned tess_gdal_unheld(const char *target, void *like, const tess_image_info *info);
/* The transform and the projection, or the control points. */
void tess_gdal_copy_georeference(GDALDatasetH like, GDALDatasetH to);
/* Sets the extras of a TIFF. Returns false without memory. */
bool tess_gdal_set_extras(const tess_extras *extras, const tess_image_info *info, GDALDatasetH to);
/* Does in advance what copying this dataset's georeference needs: PROJ and its database stay loaded. */
void tess_gdal_warm_georeference(GDALDatasetH dataset);

/* Sets the description in an ENVI header: that of `like`, or the name of the target. GDAL would write the
 * temporary name. */
void tess_gdal_describe_envi(GDALDatasetH like, GDALDatasetH to, const char *target);

#endif
