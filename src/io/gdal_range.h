/* gdal_range.h: rasters of doubles, which are read as float32 (private to gdal*.c). */
#ifndef TESS_IO_GDAL_RANGE_H
#define TESS_IO_GDAL_RANGE_H

#include "io/gdal_void.h"

/* Fails if, in rows [first, first + count), given as float32, the file has finite values that do not fit
 * float32, unless it marks them as void. Nodata values that do not fit become the largest float. */
tess_status tess_gdal_check_range(const tess_gdal_void *v, int64_t first, int64_t count, float *rows,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
