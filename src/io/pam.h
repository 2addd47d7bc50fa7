/* pam.h: nodata values and the meaning of samples that GDAL programs store beside a raster, in NAME.SUFFIX.aux.xml
 * (private to this room). */
#ifndef TESS_IO_PAM_H
#define TESS_IO_PAM_H

#include "io/nodata.h"

/* Sets the entries of the bands that have a value in the side file of `raster`. A damaged file, or one larger
 * than 1 MiB, sets nothing. */
tess_status tess_pam_nodata(const char *raster, int bands, tess_nodata *values,
                            tess_error *error) TESS_MUST_CHECK;

/* Sets scale and offset of *info, and its bit, from the side file if the raster itself has none. A writer can only
 * keep those that all bands share: TESS_SAYS_SCALES for others. */
tess_status tess_pam_meaning(const char *raster, tess_image_info *info, tess_error *error) TESS_MUST_CHECK;

/* Writes the side file of `raster` with these values and nothing else. */
tess_status tess_pam_write(const char *raster, int bands, const tess_nodata *values,
                           tess_error *error) TESS_MUST_CHECK;

#endif
