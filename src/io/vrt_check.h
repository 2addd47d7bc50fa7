/* vrt_check.h: what a VRT, a raster described in XML, may refer to (private to this room). */
#ifndef TESS_IO_VRT_CHECK_H
#define TESS_IO_VRT_CHECK_H

#include "base/status.h"

/* Reads a VRT and checks it; *text is what was checked, for GDAL to open instead of the file, and is freed by the
 * caller. `source`, or NULL, judges each file that it refers to. */
tess_status tess_vrt_check(const char *path, tess_status (*source)(const char *path, tess_error *error),
                           char **text, tess_error *error) TESS_MUST_CHECK;

#endif
