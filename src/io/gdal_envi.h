/* gdal_envi.h: where an ENVI raster has its samples, and whether they are all there (private to this room). */
#ifndef TESS_IO_GDAL_ENVI_H
#define TESS_IO_GDAL_ENVI_H

#include "io/envi_array.h"
#include "io/gdal_api.h"

/* A field of the header, with underscores for blanks; "" if it has none. */
const char *tess_gdal_envi_field(GDALDatasetH dataset, const char *name);
/* Leaves the order NULL if GDAL must read the file: another format, or compressed. Refuses an unknown order, which GDAL takes for BSQ. */
tess_status tess_gdal_envi_array(GDALDatasetH dataset, tess_envi_array *array,
                                 tess_error *error) TESS_MUST_CHECK;
/* Fails if an uncompressed ENVI file does not have the size that its header says: GDAL takes what is missing for zeros. More is allowed,
 * but not if whole bands follow each other, which would then begin at wrong places. */
tess_status tess_gdal_envi_size(GDALDatasetH dataset, const char *path, tess_error *error) TESS_MUST_CHECK;

#endif
