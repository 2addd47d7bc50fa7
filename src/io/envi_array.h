/* envi_array.h: where an ENVI raster has its samples (private to this room). */
#ifndef TESS_IO_ENVI_ARRAY_H
#define TESS_IO_ENVI_ARRAY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct tess_envi_array {
    const char *order; /* of its axes, as "HWC"; NULL: not an uncompressed ENVI raster */
    int64_t offset;    /* of the first sample, in bytes */
    bool swapped;      /* the other byte order than this machine's */
} tess_envi_array;

#endif
