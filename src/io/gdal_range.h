/* gdal_range.h: rasters of doubles, which are read as float32 (private to gdal*.c). */
#ifndef TESS_IO_GDAL_RANGE_H
#define TESS_IO_GDAL_RANGE_H

#include "io/gdal_void.h"

/* Refuses rows [first, first + count), given as float32, if the file has finite values there that float32 does not
 * hold; those that the file marks as void may be anything. Nodata values beyond float32 become its largest. */
tess_status tess_gdal_check_range(const tess_gdal_void *v, int64_t first, int64_t count, float *rows,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
