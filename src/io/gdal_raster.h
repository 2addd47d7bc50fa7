/* gdal_raster.h: an open raster (private to gdal_raster*.c). */
#ifndef TESS_IO_GDAL_RASTER_H
#define TESS_IO_GDAL_RASTER_H

#include <sys/stat.h>

#include "io/gdal_api.h"
#include "io/raster.h"

/* A file that marks pixels (--mask). */
typedef struct tess_raster_mask {
    GDALDatasetH dataset; /* NULL: there is no mask file, or its bits are in memory */
    tess_block bits;      /* of a format that can only be read from the top: one bit a pixel */
    tess_block piece;     /* bytes of the pixels that are looked at */
    int bands;            /* colours; a pixel is marked when one of them is not zero */
    int64_t width, cache, counted;
} tess_raster_mask;

typedef struct tess_raster_warp tess_raster_warp;

struct tess_raster {
    tess_memory *memory;
    GDALDatasetH dataset;
    GDALRasterBandH band;
    GDALRasterBandH marks; /* mask or alpha band: 0 is void; NULL: none */
    double opaque;         /* what a valid pixel has there */
    tess_raster_info info;
    tess_void_watch *watch; /* not owned; NULL: none */
    tess_stop *stop;        /* of the opening; not owned; NULL: none */
    char *path, *crs;
    struct stat about; /* of the file when it was opened */
    int64_t cache, counted;
    tess_raster_mask mask;
    tess_raster_warp *warp; /* NULL: the raster's own grid */
};

/* All calls of GDAL on rasters and outputs are made while this lock is held: a read of one dataset may write
 * the changed blocks of another. */
void tess_raster_lock(void);
void tess_raster_unlock(void);

/* What GDAL's structure metadata says: "" when there is no such item. */
const char *tess_raster_structure(GDALMajorObjectH object, const char *item);
/* Blocks of a band, for `together` bands that GDAL decodes at once. */
typedef struct tess_raster_blocks {
    int64_t block, row; /* bytes of one block, and of a row of blocks */
    int64_t height;     /* of a block, in pixels */
    int64_t image;      /* bytes of the whole band */
} tess_raster_blocks;
/* Fails when they are impossible. */
tess_status tess_raster_blocks_of(GDALRasterBandH band, int together, tess_raster_blocks *blocks,
                                  tess_error *error) TESS_MUST_CHECK;
/* The share of GDAL's cache that windows of such a band need. */
int64_t tess_raster_cache_for(const tess_raster_blocks *blocks);
/* Finds mask or alpha: NULL when voids are marked by nodata values only. `alpha`: which band it is, or 0. */
GDALRasterBandH tess_raster_marks(GDALDatasetH dataset, int band, int *alpha);

tess_status tess_raster_mask_open(tess_raster *raster, const char *path, tess_error *error) TESS_MUST_CHECK;
void tess_raster_mask_close(tess_raster *raster);
/* Sets bit 2 of the flags of a window where the mask file marks a pixel. */
tess_status tess_raster_mask_read(tess_raster_mask *mask, int64_t y, int64_t x, int64_t h, int64_t w,
                                  uint8_t *flags, tess_error *error) TESS_MUST_CHECK;
enum { TESS_MASK_BIT = 4 };

/* Finds the limits of outliers and the tops from a sample of the raster's pixels. */
tess_status tess_raster_sample(tess_raster *raster, tess_error *error) TESS_MUST_CHECK;
/* Finds what the mask or alpha band has at valid pixels. */
tess_status tess_raster_find_opaque(tess_raster *raster, tess_error *error) TESS_MUST_CHECK;

/* One window of GDAL's samples, as doubles. */
tess_status tess_raster_samples(GDALRasterBandH band, int64_t y, int64_t x, int64_t h, int64_t w,
                                double *values, tess_error *error) TESS_MUST_CHECK;
/* The same of the raster's own grid, NaN in voids; but not where an alpha band alone says so. */
tess_status tess_raster_heights(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w,
                                double *values, tess_error *error) TESS_MUST_CHECK;
/* For a second raster: samples of a window of the first one's grid; NaN where it has none. */
tess_status tess_raster_warp_read(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w,
                                  double *values, tess_error *error) TESS_MUST_CHECK;
void tess_raster_warp_close(tess_raster *raster);

#endif
