/* fill_quality.h: the result against a complete map, inside of the filled pixels. */
#ifndef TESS_JOB_FILL_QUALITY_H
#define TESS_JOB_FILL_QUALITY_H

#include "io/raster.h"
#include "job/fill/fill_map.h"

typedef struct tess_fill_quality {
    int64_t pixels; /* compared; 0: there was no truth */
    double rmse, mae, bias, largest;
} tess_fill_quality;

size_t tess_fill_compare_bytes(const tess_fill_map *map);
/* `output` is written, but not committed. The truth has the size of the map. */
tess_status tess_fill_compare(const tess_fill_map *map, tess_raster_output *output, tess_raster *truth,
                              tess_memory *memory, tess_stop *stop, tess_fill_quality *quality,
                              tess_error *error) TESS_MUST_CHECK;

#endif
