/* gdal_raster.c: opens one band of a raster for reading by windows.
 *
 * The memory is GDAL's cache, whose limit is raised by what a row of blocks of this raster needs: windows that
 * are read from left to right, or a scan by rows, then decode each block once. It is bounded, so that a raster
 * of any width can be opened; windows of a raster with a wider row of blocks decode some blocks twice. */
#define _XOPEN_SOURCE 700
#include "io/gdal_raster.h"
#include "io/asc_probe.h"
#include "io/gdal_envi.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "io/pages.h"
#include "io/pam.h"

enum { WINDOW_ROWS = 512 }; /* the cache holds the blocks of a window of so many rows, at any place */
enum { CACHE_LEAST = 1 << 20, CACHE_MOST = 64 << 20, BLOCK_MOST = 1 << 30 };
/* Far beyond any map; products of sizes stay small. */
static const double MOST_PIXELS = 4e12;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void tess_raster_lock(void)
{
    pthread_mutex_lock(&lock);
}

void tess_raster_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

const char *tess_raster_structure(GDALMajorObjectH object, const char *item)
{
    const char *value = tess_gdal.GDALGetMetadataItem(object, item, "IMAGE_STRUCTURE");
    return value ? value : "";
}

tess_status tess_raster_blocks_of(GDALRasterBandH band, int together, tess_raster_blocks *blocks,
                                  tess_error *error)
{
    const int64_t width = tess_gdal.GDALGetRasterBandXSize(band),
                  height = tess_gdal.GDALGetRasterBandYSize(band);
    int block_width = 0, block_height = 0;
    tess_gdal.GDALGetBlockSize(band, &block_width, &block_height);
    const int64_t sample =
        together * (int64_t)tess_gdal.GDALGetDataTypeSizeBytes(tess_gdal.GDALGetRasterDataType(band));
    *blocks = (tess_raster_blocks){.block = sample, .height = block_height, .image = width * height};
    if (block_width < 1 || block_height < 1 || !tess_mul_i64(blocks->block, block_width, &blocks->block) ||
        !tess_mul_i64(blocks->block, block_height, &blocks->block) || blocks->block > BLOCK_MOST ||
        !tess_mul_i64(blocks->block, tess_ceil_div(width, block_width), &blocks->row) ||
        !tess_mul_i64(blocks->image, sample, &blocks->image))
        return tess_fail(error, TESS_UNSUPPORTED,
                         "has blocks of %d x %d pixels in a raster of %lld x %lld, too large to be read; "
                         "rewrite it with gdal_translate -co TILED=YES",
                         block_height, block_width, (long long)height, (long long)width);
    return TESS_OK;
}

int64_t tess_raster_cache_for(const tess_raster_blocks *blocks)
{
    const int64_t rows = tess_max_i64(WINDOW_ROWS / blocks->height, 1);
    const int64_t wanted = tess_min_i64(blocks->row, CACHE_MOST) * rows * 5 / 4;
    const int64_t cache = tess_min_i64(tess_max_i64(wanted, CACHE_LEAST), CACHE_MOST);
    /* At least the blocks at the four corners of a window; for a small raster not more than itself. */
    return tess_min_i64(tess_max_i64(cache, 4 * blocks->block), 2 * blocks->image + CACHE_LEAST / 4);
}

static bool is_alpha(GDALDatasetH dataset, int band)
{
    return tess_gdal.GDALGetRasterColorInterpretation(tess_gdal.GDALGetRasterBand(dataset, band)) ==
           GCI_AlphaBand;
}

/* GDAL's own mask is not made of an alpha band of another type than Byte and UInt16, nor beside a nodata value. */
GDALRasterBandH tess_raster_marks(GDALDatasetH dataset, int band, int *alpha)
{
    const int flags = tess_gdal.GDALGetMaskFlags(tess_gdal.GDALGetRasterBand(dataset, band));
    const bool derived = (flags & GMF_NODATA) && !(flags & GMF_PER_DATASET);
    *alpha = 0;
    if (!(flags & (GMF_ALL_VALID | GMF_ALPHA)) && !derived)
        return tess_gdal.GDALGetMaskBand(tess_gdal.GDALGetRasterBand(dataset, band));
    for (int b = tess_gdal.GDALGetRasterCount(dataset); b > 0 && *alpha == 0; b--)
        *alpha = is_alpha(dataset, b) ? b : 0;
    return *alpha ? tess_gdal.GDALGetRasterBand(dataset, *alpha) : NULL;
}

static tess_status choose_band(tess_raster *raster, int wanted, tess_error *error)
{
    tess_raster_info *info = &raster->info;
    int heights = 0, last = 0;
    info->bands = tess_gdal.GDALGetRasterCount(raster->dataset);
    for (int b = 1; b <= info->bands; b++)
        if (!is_alpha(raster->dataset, b)) {
            heights++;
            last = b;
        }
    if (wanted == 0 && heights > 1)
        return tess_fail(error, TESS_BAD_OPTION,
                         "has %d bands, of which one is filled at a time; name it with `band`", heights);
    info->marked = heights;
    info->band = wanted ? wanted : last;
    if (info->band < 1 || info->band > info->bands || is_alpha(raster->dataset, info->band))
        return tess_fail(error, heights ? TESS_BAD_OPTION : TESS_BAD_INPUT,
                         "has no band %d of heights; it has %d band%s%s", info->band, info->bands,
                         info->bands == 1 ? "" : "s", info->bands > heights ? ", of which one is alpha" : "");
    raster->band = tess_gdal.GDALGetRasterBand(raster->dataset, info->band);
    return TESS_OK;
}

static tess_status check_type(tess_raster *raster, int *bits, tess_error *error)
{
    static const struct {
        GDALDataType gdal;
        tess_dtype dtype;
    } kinds[] = {{GDT_Byte, TESS_U8},    {GDT_UInt16, TESS_U16}, {GDT_Int16, TESS_I16},
                 {GDT_UInt32, TESS_U32}, {GDT_Int32, TESS_I32},  {GDT_Float32, TESS_F32},
                 {GDT_Float64, TESS_F64}};
    const GDALDataType type = tess_gdal.GDALGetRasterDataType(raster->band);
    const char *depth = tess_raster_structure(raster->band, "NBITS");
    size_t k = 0;
    while (k < sizeof kinds / sizeof *kinds && kinds[k].gdal != type)
        k++;
    if (strcmp(tess_raster_structure(raster->band, "PIXELTYPE"), "SIGNEDBYTE") == 0)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "has samples of int8, of which gdal_translate may make unsigned ones; save them as int16, in "
            "NumPy: band.view('int8').astype('int16')");
    if (k == sizeof kinds / sizeof *kinds) {
        const char *name = tess_gdal.GDALGetDataTypeName(type);
        return tess_fail(error, TESS_UNSUPPORTED,
                         "has samples of type %s, which are not read as heights; convert it with "
                         "gdal_translate -ot %s",
                         name,
                         strcmp(name, "Int8") == 0 ? "Int16"
                         : strstr(name, "Int64")   ? "Float64"
                                                   : "Float32");
    }
    raster->info.dtype = kinds[k].dtype;
    *bits = depth[0] ? atoi(depth) : 0;
    if (*bits > 0 && *bits < 32 && type == GDT_Float32)
        return tess_fail(
            error, TESS_UNSUPPORTED,
            "has floats of %d bits, too coarse for heights: 12345 m would be known to 8 m; convert it "
            "with gdal_translate -ot Float32 -co NBITS=32",
            *bits);
    if (tess_gdal.GDALGetRasterColorTable(raster->band) &&
        tess_gdal.GDALGetRasterColorInterpretation(raster->band) == GCI_PaletteIndex)
        return tess_fail(error, TESS_UNSUPPORTED,
                         "has a palette: its samples are numbers of colours, not heights");
    return TESS_OK;
}

static tess_status find_rule(tess_raster *raster, const tess_raster_settings *settings, int bits,
                             tess_error *error)
{
    tess_raster_info *info = &raster->info;
    int given = FALSE;
    info->nodata = tess_gdal.GDALGetRasterNoDataValue(raster->band, &given);
    info->has_nodata = given;
    if (!given) { /* GDAL's own reader of side files is disabled (gdal_api.c) */
        tess_nodata *beside = tess_small_alloc((size_t)info->bands, sizeof *beside);
        if (!beside)
            return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
        const tess_status status = tess_pam_nodata(raster->path, info->bands, beside, error);
        info->has_nodata = beside[info->band - 1].any;
        info->nodata = beside[info->band - 1].value;
        tess_small_free(beside);
        TESS_TRY(status);
    }
    raster->marks = tess_raster_marks(raster->dataset, info->band, &info->alpha);
    info->mask_band = raster->marks && !info->alpha;
    if (!info->alpha && !(tess_gdal.GDALGetMaskFlags(raster->band) & GMF_PER_DATASET))
        info->marked = 1;
    info->rule = tess_void_rule_make(info->dtype, bits, settings->nodata_is, settings->nodata,
                                     info->has_nodata ? &info->nodata : NULL);
    if (raster->marks) /* the file says which pixels are void: nothing is guessed */
        info->rule.usual = false;
    if (settings->nodata_is == TESS_NODATA_GIVEN && !info->rule.exact)
        return tess_fail(error, TESS_BAD_OPTION,
                         "has samples of %s, none of which is the `nodata` value %.17g",
                         tess_dtype_word(info->dtype), settings->nodata);
    info->scale = tess_gdal.GDALGetRasterScale(raster->band, &given);
    if (!given || info->scale == 0 || !isfinite(info->scale))
        info->scale = 1;
    info->offset = tess_gdal.GDALGetRasterOffset(raster->band, &given);
    if (!given || !isfinite(info->offset))
        info->offset = 0;
    return TESS_OK;
}

static void find_place(tess_raster *raster)
{
    tess_raster_info *info = &raster->info;
    const char *crs = tess_gdal.GDALGetProjectionRef(raster->dataset);
    info->has_transform = tess_gdal.GDALGetGeoTransform(raster->dataset, info->transform) == CE_None;
    raster->crs = tess_small_strdup(crs ? crs : "");
    info->crs = raster->crs ? raster->crs : "";
    info->driver = tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(raster->dataset));
    info->overviews = tess_gdal.GDALGetOverviewCount(raster->band);
    int block_width, block_height;
    tess_gdal.GDALGetBlockSize(raster->band, &block_width, &block_height);
    info->block_width = block_width;
    info->block_height = block_height;
    tess_gdal.CPLErrorReset();
}

/* Computes what will be held, and takes the share of the cache. */
static tess_status measure(tess_raster *raster, int64_t wanted, tess_error *error)
{
    tess_raster_info *info = &raster->info;
    const bool pixels = strcmp(tess_raster_structure(raster->dataset, "INTERLEAVE"), "PIXEL") == 0;
    tess_raster_blocks own, marks;
    TESS_TRY(tess_raster_blocks_of(raster->band, pixels ? info->bands : 1, &own, error));
    int64_t cache = tess_raster_cache_for(&own);
    if (raster->marks) {
        TESS_TRY(tess_raster_blocks_of(raster->marks, 1, &marks, error));
        cache += tess_raster_cache_for(&marks);
    }
    raster->cache = wanted ? tess_max_i64(wanted, 2 * own.block) : cache;
    raster->counted = raster->cache + tess_min_i64(2 * own.block, 2 * own.image) +
                      tess_gdal_decoder_bytes(raster->dataset, raster->path, own.block, own.image);
    info->held_bytes = (size_t)raster->counted;
    TESS_TRY(tess_gdal_have_room(TESS_GDAL_ROOM + raster->counted, error));
    tess_gdal_cache_share(raster->memory, raster->cache, raster->counted);
    return TESS_OK;
}

/* GDAL reads ASCII grids as float32 unless it is told otherwise. */
static tess_status open_dataset(tess_raster *raster, tess_error *error)
{
    static const char option[] = "AAIGRID_DATATYPE";
    TESS_TRY(tess_gdal_open(raster->path, 0, &raster->dataset, error));
    GDALRasterBandH band = tess_gdal.GDALGetRasterBand(raster->dataset, 1);
    const char *driver = tess_gdal.GDALGetDescription(tess_gdal.GDALGetDatasetDriver(raster->dataset));
    if (strcmp(driver, "AAIGrid") != 0 || !band || tess_gdal.GDALGetRasterDataType(band) != GDT_Float32 ||
        !tess_asc_needs_doubles(raster->path))
        return TESS_OK;
    tess_gdal.GDALClose(raster->dataset);
    raster->dataset = NULL;
    tess_gdal.CPLSetThreadLocalConfigOption(option, "Float64");
    const tess_status status = tess_gdal_open(raster->path, 0, &raster->dataset, error);
    tess_gdal.CPLSetThreadLocalConfigOption(option, NULL);
    return status;
}

static tess_status open_raster(tess_raster *raster, const tess_raster_settings *settings, tess_error *error)
{
    int bits = 0;
    TESS_TRY(open_dataset(raster, error));
    TESS_TRY(tess_gdal_envi_size(raster->dataset, raster->path, error));
    if (stat(raster->path, &raster->about) != 0)
        return tess_fail(error, TESS_IO_FAILED, "cannot be opened for reading");
    tess_raster_info *info = &raster->info;
    info->height = tess_gdal.GDALGetRasterYSize(raster->dataset);
    info->width = tess_gdal.GDALGetRasterXSize(raster->dataset);
    info->own_height = info->height;
    info->own_width = info->width;
    if (tess_gdal.GDALGetRasterCount(raster->dataset) < 1 || info->height < 1 || info->width < 1)
        return tess_fail(error, TESS_BAD_INPUT, "holds no raster; name a file of one raster");
    if ((double)info->height * (double)info->width > MOST_PIXELS)
        return tess_fail(error, TESS_BAD_INPUT, "promises an impossible size of %lld x %lld",
                         (long long)info->height, (long long)info->width);
    TESS_TRY(choose_band(raster, settings->band, error));
    TESS_TRY(check_type(raster, &bits, error));
    find_place(raster);
    if (strcmp(info->driver, "GTiff") == 0)
        TESS_TRY(tess_pages_check_one(raster->path, error));
    TESS_TRY(find_rule(raster, settings, bits, error));
    TESS_TRY(measure(raster, settings->cache, error));
    TESS_TRY(tess_raster_find_opaque(raster, error));
    if (info->rule.usual && info->dtype != TESS_U8)
        TESS_TRY(tess_raster_sample(raster, error));
    return TESS_OK;
}

tess_status tess_raster_open(tess_memory *memory, const char *path, const tess_raster_settings *settings,
                             tess_raster **out, tess_error *error)
{
    *out = NULL;
    tess_status status = tess_gdal_load(error);
    if (status != TESS_OK)
        return tess_fail_prefix(error, status, path);
    tess_raster *raster = tess_small_alloc(1, sizeof *raster);
    if (!raster || !(raster->path = tess_small_strdup(path)))
        status = tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    if (status == TESS_OK) {
        raster->memory = memory;
        raster->stop = settings->stop;
        tess_raster_lock();
        status = open_raster(raster, settings, error);
        if (status != TESS_OK && status != TESS_INTERRUPTED)
            status = tess_fail_prefix(error, status, path);
        else if (status == TESS_OK && settings->mask) /* its messages have its own name */
            status = tess_raster_mask_open(raster, settings->mask, error);
        tess_raster_unlock();
    }
    if (status == TESS_OK)
        *out = raster;
    else
        tess_raster_close(raster);
    return status;
}

const tess_raster_info *tess_raster_describe(const tess_raster *raster)
{
    return &raster->info;
}

void tess_raster_close(tess_raster *raster)
{
    if (!raster)
        return;
    tess_raster_lock();
    tess_raster_warp_close(raster);
    if (raster->dataset)
        tess_gdal.GDALClose(raster->dataset);
    tess_raster_mask_close(raster);
    if (raster->counted)
        tess_gdal_cache_share(raster->memory, -raster->cache, -raster->counted);
    tess_raster_unlock();
    tess_small_free(raster->path);
    tess_small_free(raster->crs);
    tess_small_free(raster);
}
