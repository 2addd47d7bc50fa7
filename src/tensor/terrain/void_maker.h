/* void_maker.h: voids to cut into complete elevation maps, for training and evaluation.
 *
 * Everything is drawn by counter from (seed, step, index), so that a sample's void depends on nothing else. Kinds:
 * rectangles (the Diff-DEM paper's), stripes at an angle (gaps between swaths), and blobs like those of real maps: an
 * outline from thresholded fractal noise, and an area whose logarithm is normal. In two SRTM maps of mountains (4012 inner
 * voids) the median area is 8 pixels, a diameter of 3.2, the logarithm deviates by 1.3, half of the void area lies in voids
 * of more than 12 to 17 pixels' diameter, and large voids are half as wide as a disc of their area. The usual values below
 * are for training and evaluation: larger, since small voids need no model. */
#ifndef TESS_TENSOR_TERRAIN_VOID_MAKER_H
#define TESS_TENSOR_TERRAIN_VOID_MAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum tess_void_shape {
    TESS_VOID_RECTANGLE,
    TESS_VOID_STRIPES,
    TESS_VOID_BLOBS,
    TESS_VOID_SHAPES
} tess_void_shape;

typedef struct tess_void_request {
    int64_t h, w;
    uint64_t seed;
    uint32_t step, index;
    float shares[TESS_VOID_SHAPES]; /* how often each shape is drawn; the sum is 1 */
    float smallest, largest;        /* px: sides of rectangles, widths of stripes, diameters of blobs */
    float median;                   /* px: of the diameters of blobs */
    float spread;                   /* of the logarithm of their areas */
    float at_edge; /* how often a rectangle or the blobs may be cut off by the window's edge */
    float most;    /* of the window that may become void: larger shapes are drawn again */
} tess_void_request;

/* Usual values for an h x w window. */
void tess_void_request_init(tess_void_request *request, int64_t h, int64_t w);
size_t tess_void_maker_bytes(int64_t h, int64_t w);
/* flags: h * w, 1 = void. At least one pixel is void, and at least 1 - `most` of the window is not. */
void tess_void_make(const tess_void_request *request, uint8_t *flags, void *scratch);

#endif
