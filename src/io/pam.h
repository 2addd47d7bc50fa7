/* pam.h: nodata values that GDAL programs put beside a raster, in NAME.SUFFIX.aux.xml (private to this room). */
#ifndef TESS_IO_PAM_H
#define TESS_IO_PAM_H

#include "base/status.h"

typedef struct tess_nodata {
    bool any;
    double value;
} tess_nodata;

/* Sets the entries of those of the `bands` whose value `raster`'s side file has. A file that is damaged, or larger than
 * 1 MiB, has none. */
tess_status tess_pam_nodata(const char *raster, int bands, tess_nodata *values,
                            tess_error *error) TESS_MUST_CHECK;

#endif
