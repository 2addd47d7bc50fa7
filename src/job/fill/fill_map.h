/* fill_map.h: which pixels of a map are filled, and the map at reduced sizes.
 *
 * A void that is wider than a tile cannot be filled from one tile: its middle would know nothing of its rim. So such maps
 * are first filled at a quarter of their size, or a quarter of that, until the widest void fits into half a tile; each
 * size then starts from the result of the smaller one. */
#ifndef TESS_JOB_FILL_MAP_H
#define TESS_JOB_FILL_MAP_H

#include "io/raster.h"
#include "job/fill/fill_look.h"
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
    tess_raster *second; /* subtracted from all heights; may be NULL */
    tess_memory *memory;
    tess_fill_level levels[TESS_FILL_LEVELS];
    int count;
    double base;      /* subtracted from heights, so that fp32 keeps millimetres */
    double low, high; /* of the valid pixels */
    int64_t valid_pixels, void_pixels;
    /* Left void: at the edge; too far from a valid pixel; not in the mask; without a value of the second map. */
    int64_t outer_pixels, far_pixels, kept_pixels, second_pixels;
    tess_fill_look look;       /* marks found beside those that the file declares, and zeros */
    tess_void_summary summary; /* of the pixels that are filled */
    tess_block block[TESS_FILL_LEVELS];
    tess_bitmap lost; /* while it opens: voids without a value of the second map */
    tess_block rows, lost_block;
} tess_fill_map;

typedef struct tess_fill_map_settings {
    bool inner;           /* leave voids that touch the edge */
    bool declared_only;   /* no sample is void unless it is declared so, or is no number */
    double most_distance; /* 0: no limit */
    int64_t tile;
} tess_fill_map_settings;

/* What it holds at the least, whatever the voids are. */
size_t tess_fill_map_bytes(int64_t height, int64_t width);
/* Reads the raster once, once more if its voids are other ones than was guessed, and once more if there are wide voids. On failure there is nothing to close. `second` may be NULL. */
tess_status tess_fill_map_open(tess_fill_map *map, tess_raster *raster, tess_raster *second,
                               tess_memory *memory, const tess_fill_map_settings *settings, tess_stop *stop,
                               tess_error *error) TESS_MUST_CHECK;
void tess_fill_map_close(tess_fill_map *map);
/* The square of a level that a tile covers; pixels beyond the edge of the map repeat the last ones. */
typedef struct tess_fill_window {
    int64_t level, y, x, size;
    float *values;  /* size * size: heights minus `base`; 0 where there is none */
    uint8_t *voids; /* size * size: no value */
} tess_fill_window;
/* Size of `scratch`. */
size_t tess_fill_window_bytes(int64_t size);
tess_status tess_fill_window_read(tess_fill_map *map, tess_fill_window *window, void *scratch,
                                  tess_error *error) TESS_MUST_CHECK;
/* Heights, minus those of the second map if there is one. A pixel without a value in either is NaN; `flags` (may be NULL) as
 * tess_raster_read's. `more`: room for h * w values. */
tess_status tess_fill_read(const tess_fill_map *map, int64_t y, int64_t x, int64_t h, int64_t w,
                           double *values, double *more, uint8_t *flags, tess_error *error) TESS_MUST_CHECK;
/* Subtracts the second map, if there is one, from heights of the first. */
tess_status tess_fill_subtract(const tess_fill_map *map, int64_t y, int64_t x, int64_t h, int64_t w,
                               double *values, double *more, tess_error *error) TESS_MUST_CHECK;
/* The result of the next coarser level at the window's pixels, bilinear. */
void tess_fill_guess(const tess_fill_map *map, const tess_fill_window *window, float *guess);

#endif
