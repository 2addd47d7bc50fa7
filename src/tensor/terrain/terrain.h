/* terrain.h: how far a filled elevation map is from the truth, in double precision.
 *
 * Errors over void pixels by rows, so that no map need be in memory: RMSE, MAE, bias, and the error of the slope (Horn,
 * 1981: 3 x 3 pixels, degrees), altogether and by class of void width (voids.h). A truth that is not finite does not count.
 * PSNR and MS-SSIM over the bounding box of the voids as Diff-DEM's script takes them (heights below 0 are set to 0; the
 * range is the largest height of both), and as piq computes MS-SSIM: 3 scales with weights 0.0448, 0.2856, 0.3001 over their
 * sum, Gaussian window of 11 taps and sigma 1.5, k 0.01 and 0.03. */
#ifndef TESS_TENSOR_TERRAIN_TERRAIN_H
#define TESS_TENSOR_TERRAIN_TERRAIN_H

#include <stddef.h>
#include <stdint.h>

#include "tensor/terrain/voids.h"

typedef struct tess_terrain_sums {
    int64_t pixels, slopes;
    double error, square, absolute;      /* sums of result - truth */
    double slope_square, slope_absolute; /* of the slopes' differences, in degrees */
} tess_terrain_sums;

/* What is derived from the sums; NaN without a pixel. */
typedef struct tess_terrain_errors {
    int64_t pixels;
    double rmse, mae, bias, slope_rmse, slope_mae;
} tess_terrain_errors;

typedef struct tess_terrain {
    int64_t w;
    double pixel_height, pixel_width; /* in units of height */
    tess_terrain_sums all, classes[TESS_VOID_CLASSES];
} tess_terrain;

/* Three rows of w values of one map; above or below is NULL at its first or last row. */
typedef struct tess_terrain_rows {
    const float *above, *here, *below;
} tess_terrain_rows;

void tess_terrain_begin(tess_terrain *terrain, int64_t w, double pixel_height, double pixel_width);
/* Adds a row. `flags`: not 0 = void; `classes`: of each void pixel (tess_voids_classify), or NULL. */
void tess_terrain_row(tess_terrain *terrain, const tess_terrain_rows *result, const tess_terrain_rows *truth,
                      const uint8_t *flags, const uint8_t *classes);
tess_terrain_errors tess_terrain_result(const tess_terrain_sums *sums);

/* Both are crops of h x w heights, with `stride` values from row to row; `offset` is added to each. */
typedef struct tess_terrain_pair {
    const float *result, *truth;
    int64_t h, w, stride;
    double offset;
} tess_terrain_pair;

/* Least height and width of a crop for MS-SSIM. */
enum { TESS_TERRAIN_LEAST_CROP = 41 };
size_t tess_terrain_similarity_bytes(int64_t h, int64_t w);
/* ms_ssim is NaN for a smaller crop, psnr infinite for equal ones; both NaN when a truth is not finite or no height is above 0. */
void tess_terrain_similarity(const tess_terrain_pair *pair, void *scratch, double *psnr, double *ms_ssim);

#endif
