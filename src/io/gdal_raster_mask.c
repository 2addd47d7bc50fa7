/* gdal_raster_mask.c: a file that marks the pixels to fill: nonzero is void.
 *
 * It must have the raster's size, and the same transform if both have one; a PNG has none. TIFF and raw files
 * are read by windows like the raster. PNG, JPEG and WebP can only be decoded from the top, so their marks are
 * kept in memory, one bit a pixel. */
#include <string.h>

#include "base/checked.h"
#include "io/gdal_envi.h"
#include "io/gdal_raster.h"

enum { PIECE = 256 << 10 };

static tess_status check_mask(const tess_raster_info *info, GDALDatasetH mask, tess_error *error)
{
    const long long height = tess_gdal.GDALGetRasterYSize(mask), width = tess_gdal.GDALGetRasterXSize(mask);
    double transform[6];
    if (height != info->height || width != info->width)
        return tess_fail(error, TESS_BAD_INPUT, "is a mask of %lld x %lld pixels for a raster of %lld x %lld",
                         height, width, (long long)info->height, (long long)info->width);
    if (tess_gdal.GDALGetRasterCount(mask) < 1)
        return tess_fail(error, TESS_BAD_INPUT, "holds no raster");
    if (info->has_transform && tess_gdal.GDALGetGeoTransform(mask, transform) == CE_None &&
        !(tess_raster_shift(info, transform) < TESS_RASTER_SAME_PLACE))
        return tess_fail(error, TESS_BAD_INPUT,
                         "is a mask for another place: its transform is not the raster's, by %.3g pixels",
                         tess_raster_shift(info, transform));
    for (int b = 1; b <= tess_gdal.GDALGetRasterCount(mask); b++) {
        GDALRasterBandH band = tess_gdal.GDALGetRasterBand(mask, b);
        if (strcmp(tess_raster_structure(band, "NBITS"), "1") == 0)
            continue; /* GDAL shows most TIFFs of one bit as a palette of black and white */
        if (tess_gdal.GDALGetRasterColorTable(band) &&
            tess_gdal.GDALGetRasterColorInterpretation(band) == GCI_PaletteIndex)
            return tess_fail(error, TESS_UNSUPPORTED,
                             "is a mask with a palette; save it as gray, where 0 is valid and 255 void");
    }
    return TESS_OK;
}

static int colours_of(GDALDatasetH mask)
{
    const int bands = tess_gdal.GDALGetRasterCount(mask);
    int colours = 0;
    while (colours < bands && colours < 3 &&
           tess_gdal.GDALGetRasterColorInterpretation(tess_gdal.GDALGetRasterBand(mask, colours + 1)) !=
               GCI_AlphaBand)
        colours++;
    return colours;
}

/* Marks bit 2 of `flags`, row by row. Values of any type count, so they are read as doubles. */
static tess_status read_rows(tess_raster_mask *mask, int64_t y, int64_t x, int64_t h, int64_t w,
                             int64_t stride, uint8_t *flags, tess_error *error)
{
    double *samples = mask->piece.data;
    for (int b = 1; b <= mask->bands; b++) {
        TESS_TRY(
            tess_raster_samples(tess_gdal.GDALGetRasterBand(mask->dataset, b), y, x, h, w, samples, error));
        for (int64_t r = 0; r < h; r++)
            for (int64_t c = 0; c < w; c++)
                flags[r * stride + c] |= samples[r * w + c] != 0 ? TESS_MASK_BIT : 0;
    }
    return TESS_OK;
}

static tess_status read_pieces(tess_raster_mask *mask, int64_t y, int64_t x, int64_t h, int64_t w,
                               uint8_t *flags, tess_error *error)
{
    const int64_t room = PIECE / (int64_t)sizeof(double), across = tess_min_i64(w, room),
                  down = tess_max_i64(1, room / across);
    for (int64_t r = 0; r < h; r += down)
        for (int64_t c = 0; c < w; c += across)
            TESS_TRY(read_rows(mask, y + r, x + c, tess_min_i64(down, h - r), tess_min_i64(across, w - c), w,
                               flags + r * w + c, error));
    return TESS_OK;
}

tess_status tess_raster_mask_read(tess_raster_mask *mask, int64_t y, int64_t x, int64_t h, int64_t w,
                                  uint8_t *flags, tess_error *error)
{
    if (mask->dataset)
        return read_pieces(mask, y, x, h, w, flags, error);
    const uint8_t *bits = mask->bits.data;
    for (int64_t r = 0; r < h; r++)
        for (int64_t c = 0; c < w; c++) {
            const int64_t at = (y + r) * mask->width + x + c;
            flags[r * w + c] |= bits[at >> 3] >> (at & 7) & 1 ? TESS_MASK_BIT : 0;
        }
    return TESS_OK;
}

/* Reads the whole mask from the top into bits. */
static tess_status load_bits(tess_raster *raster, tess_error *error)
{
    tess_raster_mask *mask = &raster->mask;
    const int64_t height = raster->info.height, width = raster->info.width;
    TESS_TRY(tess_block_alloc(raster->memory, &mask->bits, TESS_MEM_HOST,
                              (size_t)tess_ceil_div(height * width, 8), error));
    uint8_t *bits = mask->bits.data, *row = tess_small_alloc((size_t)width, 1);
    tess_status status = row ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory for a row of the mask");
    for (int64_t y = 0; y < height && status == TESS_OK; y++) {
        memset(row, 0, (size_t)width);
        status = read_pieces(mask, y, 0, 1, width, row, error);
        for (int64_t x = 0; x < width; x++)
            bits[(y * width + x) >> 3] |= (uint8_t)((row[x] != 0) << ((y * width + x) & 7));
    }
    tess_small_free(row);
    tess_gdal.GDALClose(mask->dataset);
    mask->dataset = NULL;
    return status;
}

static bool from_the_top(GDALDatasetH mask)
{
    const char *driver = tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(mask));
    return strcmp(driver, "PNG") == 0 || strcmp(driver, "JPEG") == 0 || strcmp(driver, "WEBP") == 0;
}

static tess_status open_mask(tess_raster *raster, const char *path, tess_error *error)
{
    tess_raster_mask *mask = &raster->mask;
    tess_raster_info *info = &raster->info;
    tess_raster_blocks blocks;
    TESS_TRY(tess_gdal_open(path, 0, &mask->dataset, error));
    TESS_TRY(tess_gdal_envi_size(mask->dataset, path, error));
    TESS_TRY(check_mask(info, mask->dataset, error));
    mask->width = info->width;
    mask->bands = colours_of(mask->dataset);
    TESS_TRY(
        tess_raster_blocks_of(tess_gdal.GDALGetRasterBand(mask->dataset, 1), mask->bands, &blocks, error));
    mask->cache = tess_raster_cache_for(&blocks);
    mask->counted = mask->cache + 2 * blocks.block;
    tess_gdal_cache_share(raster->memory, mask->cache, mask->counted);
    TESS_TRY(tess_block_alloc(raster->memory, &mask->piece, TESS_MEM_HOST, PIECE, error));
    if (from_the_top(mask->dataset))
        TESS_TRY(load_bits(raster, error));
    info->mask_file = true;
    info->held_bytes += (size_t)mask->counted + mask->piece.bytes + mask->bits.bytes;
    return TESS_OK;
}

tess_status tess_raster_mask_open(tess_raster *raster, const char *path, tess_error *error)
{
    const tess_status status = open_mask(raster, path, error);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, path);
}

void tess_raster_mask_close(tess_raster *raster)
{
    tess_raster_mask *mask = &raster->mask;
    if (mask->dataset)
        tess_gdal.GDALClose(mask->dataset);
    tess_block_free(&mask->bits);
    tess_block_free(&mask->piece);
    if (mask->counted)
        tess_gdal_cache_share(raster->memory, -mask->cache, -mask->counted);
    *mask = (tess_raster_mask){0};
}
