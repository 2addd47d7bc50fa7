/* fill_quality.h: the result against a complete map, inside of the filled pixels. */
#ifndef TESS_JOB_FILL_QUALITY_H
#define TESS_JOB_FILL_QUALITY_H

#include "io/raster.h"
#include "job/fill/fill_map.h"
#include "tensor/terrain/terrain.h"

/* Maps up to this many pixels are also compared by the width of their voids, and by PSNR and MS-SSIM, which need the whole
 * map in memory. */
enum { TESS_FILL_WHOLE = 1 << 24 };

typedef struct tess_fill_quality {
    bool given, whole; /* there was a truth; the following members are set as well: */
    double psnr, ms_ssim;
    tess_terrain_errors all, classes[TESS_VOID_CLASSES];
} tess_fill_quality;

size_t tess_fill_compare_bytes(const tess_fill_map *map);
/* `output` is written, but not committed. The truth has the size of the map. */
tess_status tess_fill_compare(const tess_fill_map *map, tess_raster_output *output, tess_raster *truth,
                              tess_memory *memory, tess_stop *stop, tess_fill_quality *quality,
                              tess_error *error) TESS_MUST_CHECK;

#endif
