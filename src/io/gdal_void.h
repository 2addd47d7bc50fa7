/* gdal_void.h: which samples a raster marks as void, that is, without a value (private to gdal*.c). */
#ifndef TESS_IO_GDAL_VOID_H
#define TESS_IO_GDAL_VOID_H

#include "io/gdal_api.h"
#include "io/nodata.h"
#include "io/pam.h"

typedef struct tess_gdal_void {
    GDALDatasetH dataset; /* not owned */
    tess_image_info info;
    tess_nodata *nodata; /* for each channel; NULL: no channel has a nodata value */
    int masks;           /* number of mask bands that are read: 0, 1 for all channels, or one for each */
    int64_t block_rows;  /* block height of the masks, read one row of blocks at a time */
    tess_block strip;
    int64_t strip_first, strip_rows;
    int64_t cache; /* share of GDAL's cache */
} tess_gdal_void;

/* Fills *v, and `masked` and `mask_band` of *info. */
tess_status tess_gdal_void_open(tess_gdal_void *v, GDALDatasetH dataset, tess_image_info *info,
                                tess_error *error) TESS_MUST_CHECK;
size_t tess_gdal_void_held(const tess_gdal_void *v); /* size of the strip (tess_gdal_void_start) */
tess_status tess_gdal_void_start(tess_gdal_void *v, tess_memory *memory, tess_error *error) TESS_MUST_CHECK;
/* For rows [first, first + count), whose samples are `rows`. */
tess_status tess_gdal_void_rows(tess_gdal_void *v, int64_t first, int64_t count, const void *rows,
                                unsigned char *valid, tess_error *error) TESS_MUST_CHECK;
void tess_gdal_void_close(tess_gdal_void *v);
/* The nodata value of a result. Doubles are read as floats, so their nodata value is converted too, even a
 * finite one that float32 cannot hold. */
double tess_gdal_written_nodata(const tess_image_info *info, double nodata);
/* True when any band has a real mask, which is no alpha and not made of its nodata value. */
bool tess_gdal_has_mask(GDALDatasetH dataset);
GDALRasterBandH tess_gdal_mask_of(GDALDatasetH dataset, int band);

/* Copies a mask to that of a dataset of the same size, which all channels share. Holds tess_gdal_copy_mask_bytes
 * meanwhile. */
tess_status tess_gdal_copy_mask(GDALRasterBandH from, GDALDatasetH to, tess_memory *memory,
                                tess_error *error) TESS_MUST_CHECK;
size_t tess_gdal_copy_mask_bytes(int64_t width);

#endif
