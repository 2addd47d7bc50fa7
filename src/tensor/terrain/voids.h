/* voids.h: what is known of the voids of a whole map, from one bit a pixel: which are outside the mapped area, how far each
 * pixel is from a valid one, and how many voids there are and how wide. Void pixels are connected to their 8 neighbours.
 * Everything goes through the map by rows; the memory beside the bitmaps grows with the width and the square root of the
 * height, and is stated beforehand. */
#ifndef TESS_TENSOR_TERRAIN_VOIDS_H
#define TESS_TENSOR_TERRAIN_VOIDS_H

#include "base/status.h"
#include "tensor/terrain/bitmap.h"

/* Voids by their width, which is twice the largest distance of their pixels to a valid pixel. */
typedef enum tess_void_class {
    TESS_VOID_NARROW, /* under 16 pixels */
    TESS_VOID_MIDDLE, /* 16 to 64 */
    TESS_VOID_WIDE,   /* above 64 */
    TESS_VOID_CLASSES
} tess_void_class;

tess_void_class tess_void_class_of(double width);
const char *tess_void_class_name(tess_void_class kind);

typedef struct tess_void_one {
    int64_t pixels;
    int64_t top, left, bottom, right; /* the last two are one past the end */
    double width;                     /* infinite when there is no valid pixel */
    bool at_edge;                     /* touches the raster's edge */
} tess_void_one;

typedef struct tess_void_summary {
    int64_t count, pixels, at_edge;
    tess_void_one largest, widest;
    int64_t counts[TESS_VOID_CLASSES], class_pixels[TESS_VOID_CLASSES];
} tess_void_summary;

/* Sets in `outer` (same size, all clear) the void pixels that are connected to the raster's edge. `scratch`:
 * tess_voids_outer_bytes. */
size_t tess_voids_outer_bytes(int64_t h, int64_t w);
void tess_voids_outer(const tess_bitmap *voids, tess_bitmap *outer, void *scratch);

/* Calls `row` for each row from the top with the squared distances of its pixels to the nearest valid pixel of the map: 0 at
 * valid ones, TESS_VOID_FAR where there is none. Exact. */
#define TESS_VOID_FAR INT64_MAX
typedef void (*tess_voids_row_fn)(void *arg, int64_t y, const int64_t *squares);
size_t tess_voids_distance_bytes(int64_t h, int64_t w);
void tess_voids_distances(const tess_bitmap *voids, void *scratch, tess_voids_row_fn row, void *arg);
/* Clears in `near` (`voids` itself, a copy of it, or a part) the pixels whose distance to a valid one is above `most`. */
void tess_voids_limit(const tess_bitmap *voids, double most, tess_bitmap *near, void *scratch);

/* Counts the voids. `each` is called for every void when its last row is done, or is NULL. */
typedef void (*tess_voids_each_fn)(void *arg, const tess_void_one *one);
size_t tess_voids_summary_bytes(int64_t h, int64_t w);
void tess_voids_summary(const tess_bitmap *voids, void *scratch, tess_voids_each_fn each, void *arg,
                        tess_void_summary *summary);

/* The voids of a window in memory of less than 2^31 pixels: `each` gets the numbers y * w + x of its pixels. */
typedef void (*tess_voids_walk_fn)(void *arg, const tess_void_one *one, const int32_t *pixels);
size_t tess_voids_walk_bytes(int64_t h, int64_t w);
void tess_voids_walk(const uint8_t *flags, int64_t h, int64_t w, void *scratch, tess_voids_walk_fn each,
                     void *arg);
/* The tess_void_class of every void pixel, and TESS_VOID_CLASSES at the valid ones. Scratch: tess_voids_walk_bytes. */
void tess_voids_classify(const uint8_t *flags, int64_t h, int64_t w, void *scratch, uint8_t *classes);

#endif
