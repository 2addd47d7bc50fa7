/* gdal_void.c: samples without a value: equal to the band's nodata value (nodata.c), or zero in a mask band.
 *
 * Mask bands are read one row of blocks at a time, like the samples (gdal.c). Alpha does not count as a mask: it is a
 * channel. */
#include "io/gdal_void.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { COPIED_ROWS = 64 };

/* The raster's own values, and those of its side file for bands that have none. */
static tess_status find_nodata(tess_gdal_void *v, tess_error *error)
{
    const char *path = tess_gdal.GDALGetDescription(v->dataset);
    if (!(v->nodata = tess_small_alloc((size_t)v->info.channels, sizeof *v->nodata)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    if (path[0] == '/' || path[0] == '.') /* not a page of a file or the text of a VRT */
        TESS_TRY(tess_pam_nodata(path, v->info.channels, v->nodata, error));
    for (int c = 0; c < v->info.channels; c++) {
        int given = FALSE;
        const double value =
            tess_gdal.GDALGetRasterNoDataValue(tess_gdal.GDALGetRasterBand(v->dataset, c + 1), &given);
        if (given)
            v->nodata[c] = (tess_nodata){true, value};
    }
    return TESS_OK;
}

static void drop_nodata(tess_gdal_void *v)
{
    tess_small_free(v->nodata);
    v->nodata = NULL;
}

GDALRasterBandH tess_gdal_mask_of(GDALDatasetH dataset, int band)
{
    return tess_gdal.GDALGetMaskBand(tess_gdal.GDALGetRasterBand(dataset, band));
}

/* True when the band has a real mask. A mask derived from alpha or from one band's nodata value does not count,
 * but one from the NODATA_VALUES of all bands does. */
static bool has_mask(GDALDatasetH dataset, int band, bool *shared)
{
    const int flags = tess_gdal.GDALGetMaskFlags(tess_gdal.GDALGetRasterBand(dataset, band));
    *shared = flags & GMF_PER_DATASET;
    return !(flags & (GMF_ALL_VALID | GMF_ALPHA)) && (!(flags & GMF_NODATA) || *shared);
}

bool tess_gdal_has_mask(GDALDatasetH dataset)
{
    bool found = false, shared;
    for (int b = 1; b <= tess_gdal.GDALGetRasterCount(dataset) && !found; b++)
        found = has_mask(dataset, b, &shared);
    return found;
}

static void find_masks(tess_gdal_void *v)
{
    bool shared = false;
    if (has_mask(v->dataset, 1, &shared) && shared)
        v->masks = 1;
    for (int b = 1; b <= v->info.channels && !v->masks; b++)
        if (has_mask(v->dataset, b, &shared))
            v->masks = v->info.channels;
    if (!v->masks)
        return;
    int block_width = 0, block_height = 0;
    tess_gdal.GDALGetBlockSize(tess_gdal_mask_of(v->dataset, 1), &block_width, &block_height);
    v->block_rows = tess_min_i64(tess_max_i64(block_height, 1), v->info.height);
    v->cache = 2 * ((int64_t)block_width * block_height + 512);
}

tess_status tess_gdal_void_open(tess_gdal_void *v, GDALDatasetH dataset, tess_image_info *info,
                                tess_error *error)
{
    *v = (tess_gdal_void){.dataset = dataset, .info = *info};
    tess_image_info found = *info;
    const tess_status status = find_nodata(v, error);
    const bool any = status == TESS_OK && tess_nodata_describe(v->nodata, &found);
    if (any && info->foreign) /* it is a value of the inks, not of the RGB that is made of them */
        info->says |= TESS_SAYS_NODATA;
    else if (any)
        *info = found;
    if (!any || info->foreign)
        drop_nodata(v);
    TESS_TRY(status);
    find_masks(v);
    info->masked = v->nodata || v->masks;
    info->mask_band = v->masks == 1;
    return TESS_OK;
}

static size_t strip_bytes(const tess_gdal_void *v)
{
    return (size_t)(v->masks * v->block_rows * v->info.width);
}

size_t tess_gdal_void_held(const tess_gdal_void *v)
{
    return v->masks ? tess_block_granted(strip_bytes(v)) : 0;
}

tess_status tess_gdal_void_start(tess_gdal_void *v, tess_memory *memory, tess_error *error)
{
    return v->masks ? tess_block_alloc(memory, &v->strip, TESS_MEM_HOST, strip_bytes(v), error) : TESS_OK;
}

void tess_gdal_void_close(tess_gdal_void *v)
{
    tess_small_free(v->nodata);
    tess_block_free(&v->strip);
    *v = (tess_gdal_void){0};
}

static tess_status read_mask(GDALRasterBandH mask, int64_t first, int64_t rows, int64_t width, void *to,
                             tess_error *error)
{
    tess_gdal.CPLErrorReset();
    if (tess_gdal.GDALRasterIO(mask, GF_Read, 0, (int)first, (int)width, (int)rows, to, (int)width, (int)rows,
                               GDT_Byte, 0, 0) == CE_None &&
        tess_gdal.CPLGetLastErrorType() < CE_Failure)
        return TESS_OK;
    return tess_gdal_fail(error, TESS_BAD_INPUT, "its mask of void samples is damaged");
}

static tess_status apply_masks(tess_gdal_void *v, int64_t y, unsigned char *valid, tess_error *error)
{
    const int64_t width = v->info.width;
    const int channels = v->info.channels;
    if (y < v->strip_first || y >= v->strip_first + v->strip_rows) {
        v->strip_rows = 0;
        v->strip_first = y / v->block_rows * v->block_rows;
        const int64_t have = tess_min_i64(v->block_rows, v->info.height - v->strip_first);
        for (int m = 0; m < v->masks; m++)
            TESS_TRY(read_mask(tess_gdal_mask_of(v->dataset, m + 1), v->strip_first, have, width,
                               (char *)v->strip.data + m * v->block_rows * width, error));
        v->strip_rows = have;
    }
    for (int c = 0; c < channels; c++) {
        const int64_t row = (v->masks > 1 ? c * v->block_rows : 0) + y - v->strip_first;
        const unsigned char *mask = (const unsigned char *)v->strip.data + row * width;
        for (int64_t x = 0; x < width; x++)
            valid[x * channels + c] = mask[x] != 0;
    }
    return TESS_OK;
}

double tess_gdal_written_nodata(const tess_image_info *info, double nodata)
{
    if (info->dtype != TESS_F32)
        return nodata;
    return tess_beyond_float(nodata) ? copysign(FLT_MAX, nodata) : (double)(float)nodata;
}

tess_status tess_gdal_void_rows(tess_gdal_void *v, int64_t first, int64_t count, const void *rows,
                                unsigned char *valid, tess_error *error)
{
    const int64_t samples = v->info.width * v->info.channels;
    memset(valid, 1, (size_t)(count * samples));
    for (int64_t y = 0; v->masks && y < count; y++)
        TESS_TRY(apply_masks(v, first + y, valid + y * samples, error));
    if (v->nodata)
        tess_nodata_mark(v->nodata, &v->info, rows, count * v->info.width, valid);
    return TESS_OK;
}

size_t tess_gdal_copy_mask_bytes(int64_t width)
{
    return tess_block_granted((size_t)(COPIED_ROWS * width));
}

tess_status tess_gdal_copy_mask(GDALRasterBandH from, GDALDatasetH to, tess_memory *memory, tess_error *error)
{
    const int64_t height = tess_gdal.GDALGetRasterYSize(to), width = tess_gdal.GDALGetRasterXSize(to);
    tess_block rows = {0};
    TESS_TRY(tess_block_alloc(memory, &rows, TESS_MEM_HOST, (size_t)(COPIED_ROWS * width), error));
    tess_status status = TESS_OK;
    for (int64_t y = 0; y < height && status == TESS_OK; y += COPIED_ROWS) {
        const int64_t some = tess_min_i64(COPIED_ROWS, height - y);
        status = read_mask(from, y, some, width, rows.data, error);
        if (status == TESS_OK &&
            tess_gdal.GDALRasterIO(tess_gdal_mask_of(to, 1), GF_Write, 0, (int)y, (int)width, (int)some,
                                   rows.data, (int)width, (int)some, GDT_Byte, 0, 0) != CE_None)
            status = tess_gdal_fail_write(error);
    }
    tess_block_free(&rows);
    return status;
}
