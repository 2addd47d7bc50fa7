/* vrt_check.h: what a VRT, a raster described in XML, may refer to (private to this room). */
#ifndef TESS_IO_VRT_CHECK_H
#define TESS_IO_VRT_CHECK_H

#include "base/status.h"

/* Reads a VRT and checks it. *text is the checked text, which GDAL opens instead of the file; the caller frees
 * it. `source`, or NULL, checks each file that the VRT refers to. */
tess_status tess_vrt_check(const char *path, tess_status (*source)(const char *path, tess_error *error),
                           char **text, tess_error *error) TESS_MUST_CHECK;

#endif
