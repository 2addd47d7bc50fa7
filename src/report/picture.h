/* picture.h: one small picture: an image file reduced to a few hundred pixels, drawn as 8-bit colours, encoded as PNG. */
#ifndef TESS_REPORT_PICTURE_H
#define TESS_REPORT_PICTURE_H

#include "base/memory.h"
#include "base/stop.h"

/* An image reduced by averaging: height * width * channels values, NaN where the file has none. */
typedef struct tess_reduced {
    int64_t full_height, full_width;
    int64_t height, width;
    int channels;  /* 1 or 3 */
    bool fraction; /* values are fractions of white */
    float *values; /* owned */
} tess_reduced;

/* Reads an image, or three bands of a cube. Files above a limit of pixels are refused. */
tess_status tess_reduce_image(tess_memory *memory, const char *path, int64_t side, tess_stop *stop,
                              tess_reduced *out, tess_error *error) TESS_MUST_CHECK;
tess_status tess_reduce_cube(tess_memory *memory, const char *path, int64_t side, tess_stop *stop,
                             tess_reduced *out, tess_error *error) TESS_MUST_CHECK;
void tess_reduced_clear(tess_reduced *image);

/* Each draws height * width pixels of three bytes. Pixels without a value are red. */
void tess_draw_plain(const tess_reduced *image, unsigned char *pixels);
void tess_draw_heat(const tess_reduced *image, unsigned char *pixels); /* colours from dark blue to yellow */
/* Shades a height map lit from the north-west. `steepness` is the slope that is drawn half dark; 0: found from the map, and
 * stored, so that a second map is shaded alike. */
void tess_draw_hillshade(const tess_reduced *image, double *steepness, unsigned char *pixels);

/* Encodes as PNG; `near` is a file beside which a temporary one may be made. The caller frees *png. */
tess_status tess_encode_png(tess_memory *memory, const char *near, int64_t height, int64_t width,
                            const unsigned char *pixels, unsigned char **png, size_t *bytes,
                            tess_error *error) TESS_MUST_CHECK;

#endif
