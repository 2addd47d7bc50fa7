/* fill_map.h: which pixels of a map are filled, and the map at reduced sizes.
 *
 * A void that is wider than a tile cannot be filled from one tile: its middle would know nothing of its rim. So such maps
 * are first filled at a quarter of their size, or a quarter of that, until the widest void fits into half a tile; each
 * size then starts from the result of the smaller one. */
#ifndef TESS_JOB_FILL_MAP_H
#define TESS_JOB_FILL_MAP_H

#include "io/raster.h"
#include "tensor/terrain/voids.h"

enum { TESS_FILL_FACTOR = 4, TESS_FILL_LEVELS = 8 };

/* The map at one size. Level 0 is the raster itself, whose values are read from the file. */
typedef struct tess_fill_level {
    int64_t height, width;
    tess_bitmap voids;  /* pixels without a value */
    tess_bitmap wanted; /* those that are filled */
    float *values;      /* of level 1 and up, minus `base`; voids are filled when the level is done */
} tess_fill_level;

typedef struct tess_fill_map {
    tess_raster *raster;
    tess_memory *memory;
    tess_fill_level levels[TESS_FILL_LEVELS];
    int count;
    double base; /* subtracted from heights, so that fp32 keeps millimetres */
    double low, high;                            /* of the valid pixels */
    int64_t void_pixels, outer_pixels, far_pixels, kept_pixels; /* outer, far, kept: left void, and why */
    int64_t valid_pixels;
    tess_void_summary summary; /* of the pixels that are filled */
    tess_block block[TESS_FILL_LEVELS];
    tess_block rows; /* for passes over the raster */
} tess_fill_map;

typedef struct tess_fill_map_settings {
    bool inner;           /* leave voids that touch the edge */
    double most_distance; /* 0: no limit */
    int64_t tile;
} tess_fill_map_settings;

/* Reads the raster once (twice if there are wide voids). On failure there is nothing to close. */
tess_status tess_fill_map_open(tess_fill_map *map, tess_raster *raster, tess_memory *memory,
                               const tess_fill_map_settings *settings, tess_stop *stop,
                               tess_error *error) TESS_MUST_CHECK;
void tess_fill_map_close(tess_fill_map *map);
/* Bytes that it holds while it is open, and at most while it opens. */
size_t tess_fill_map_held(const tess_fill_map *map);

/* Heights minus `base` of a window of a level, and what they are; pixels beyond the edge repeat the last ones. valid: has a value in the map;
 * wanted: is to be filled. `scratch`: window * window doubles and flags, tess_fill_window_bytes. */
typedef struct tess_fill_window {
    int64_t level, y, x, size;
    float *values;   /* size * size; 0 where there is no value */
    uint8_t *voids;  /* size * size: no value */
    uint8_t *wanted; /* size * size: to be filled; 0 beyond the edge */
} tess_fill_window;
size_t tess_fill_window_bytes(int64_t size);
tess_status tess_fill_window_read(tess_fill_map *map, tess_fill_window *window, void *scratch,
                                  tess_error *error) TESS_MUST_CHECK;
/* The result of the next coarser level at the window's pixels, bilinear. */
void tess_fill_guess(const tess_fill_map *map, const tess_fill_window *window, float *guess);

#endif
