/* gdal_raster_read.c: windows of a raster, with voids told from heights; and the sample of pixels from which
 * the limits of outliers are found. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/trace.h"
#include "io/gdal_raster.h"
#include "tensor/samples.h"

/* A grid of small windows all over the raster: at most 2^20 pixels, whatever its size. */
enum { WINDOWS = 16, SIDE = 64, PIECE = 1024 };

tess_status tess_raster_samples(GDALRasterBandH band, int64_t y, int64_t x, int64_t h, int64_t w,
                                double *values, tess_error *error)
{
    tess_gdal.CPLErrorReset();
    const CPLErr result = tess_gdal.GDALRasterIO(band, GF_Read, (int)x, (int)y, (int)w, (int)h, values,
                                                 (int)w, (int)h, GDT_Float64, 0, 0);
    if (result == CE_None && tess_gdal.CPLGetLastErrorType() < CE_Failure)
        return TESS_OK;
    return tess_gdal_fail(error, TESS_BAD_INPUT, "damaged, truncated, or changed while it was read");
}

static const char damaged_marks[] = "its mask of void pixels is damaged";

/* Alpha of floats, where a half is not nothing. */
static tess_status read_fractions(GDALRasterBandH marks, int64_t y, int64_t x, int64_t h, int64_t w,
                                  uint8_t *flags, tess_error *error)
{
    float row[PIECE];
    for (int64_t i = 0; i < h; i++)
        for (int64_t k = 0; k < w; k += PIECE) {
            const int64_t some = tess_min_i64(PIECE, w - k);
            tess_gdal.CPLErrorReset();
            if (tess_gdal.GDALRasterIO(marks, GF_Read, (int)(x + k), (int)(y + i), (int)some, 1, row,
                                       (int)some, 1, GDT_Float32, 0, 0) != CE_None ||
                tess_gdal.CPLGetLastErrorType() >= CE_Failure)
                return tess_gdal_fail(error, TESS_BAD_INPUT, damaged_marks);
            for (int64_t c = 0; c < some; c++)
                flags[i * w + k + c] = row[c] > 0;
        }
    return TESS_OK;
}

static tess_status read_marks(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w, uint8_t *flags,
                              tess_error *error)
{
    if (!raster->marks) {
        memset(flags, 1, (size_t)(h * w));
        return TESS_OK;
    }
    const GDALDataType type = tess_gdal.GDALGetRasterDataType(raster->marks);
    if (type == GDT_Float32 || type == GDT_Float64)
        return read_fractions(raster->marks, y, x, h, w, flags, error);
    tess_gdal.CPLErrorReset();
    if (tess_gdal.GDALRasterIO(raster->marks, GF_Read, (int)x, (int)y, (int)w, (int)h, flags, (int)w, (int)h,
                               GDT_Byte, 0, 0) != CE_None ||
        tess_gdal.CPLGetLastErrorType() >= CE_Failure)
        return tess_gdal_fail(error, TESS_BAD_INPUT, damaged_marks);
    for (int64_t i = 0; i < h * w; i++)
        flags[i] = flags[i] != 0;
    return TESS_OK;
}

/* `flags`, if any: 1 where a mask or alpha band says that there is a value. */
static void judge(const tess_raster *raster, int64_t count, double *values, uint8_t *flags)
{
    const tess_raster_info *info = &raster->info;
    const double scale = info->scale, offset = info->offset;
    const uint8_t left = info->mask_file ? TESS_PIXEL_KEPT : TESS_PIXEL_VOID;
    for (int64_t first = 0; first < count; first += PIECE) {
        const int64_t some = tess_min_i64(PIECE, count - first);
        uint8_t empty[PIECE], *flag = flags ? flags + first : NULL;
        double *value = values + first;
        tess_void_samples(&info->rule, value, some, empty);
        for (int64_t i = 0; flag && i < some; i++) {
            empty[i] = (uint8_t)(empty[i] | !(flag[i] & 1));
            flag[i] = flag[i] & TESS_MASK_BIT ? TESS_PIXEL_VOID : empty[i] ? left : TESS_PIXEL_VALID;
        }
        for (int64_t i = 0; flag && raster->watch && i < some; i++)
            if (flag[i] == TESS_PIXEL_VALID)
                tess_void_watch_count(raster->watch, &info->rule, value[i]);
        for (int64_t i = 0; i < some; i++)
            value[i] = empty[i] ? (double)NAN : value[i] * scale + offset;
    }
}

/* For a caller who wants no flags: NaN where the mask or alpha band says that there is no value. */
static tess_status apply_marks(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w,
                               double *values, tess_error *error)
{
    uint8_t flags[PIECE];
    for (int64_t i = 0; i < h; i++)
        for (int64_t k = 0; k < w; k += PIECE) {
            const int64_t some = tess_min_i64(PIECE, w - k);
            TESS_TRY(read_marks(raster, y + i, x + k, 1, some, flags, error));
            for (int64_t c = 0; c < some; c++)
                values[i * w + k + c] = flags[c] ? values[i * w + k + c] : (double)NAN;
        }
    return TESS_OK;
}

static tess_status read_window(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w,
                               double *values, uint8_t *flags, tess_error *error)
{
    if (flags)
        TESS_TRY(read_marks(raster, y, x, h, w, flags, error));
    TESS_TRY(tess_raster_samples(raster->band, y, x, h, w, values, error));
    if (flags && raster->info.mask_file)
        TESS_TRY(tess_raster_mask_read(&raster->mask, y, x, h, w, flags, error));
    for (int64_t i = 0; flags && raster->watch && i < h; i++)
        tess_void_watch_row(raster->watch, &raster->info.rule, values + i * w, w);
    judge(raster, h * w, values, flags);
    return flags || !raster->marks ? TESS_OK : apply_marks(raster, y, x, h, w, values, error);
}

/* The warper has left out what is void: no value between heights is a mark. */
static tess_status read_warped(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w,
                               double *values, uint8_t *flags, tess_error *error)
{
    TESS_TRY(tess_raster_warp_read(raster, y, x, h, w, values, error));
    for (int64_t i = 0; i < h * w; i++)
        values[i] = isfinite(values[i]) ? values[i] * raster->info.scale + raster->info.offset : (double)NAN;
    for (int64_t i = 0; flags && i < h * w; i++)
        flags[i] = isfinite(values[i]) ? TESS_PIXEL_VALID : TESS_PIXEL_VOID;
    return TESS_OK;
}

tess_status tess_raster_heights(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w,
                                double *values, tess_error *error)
{
    uint8_t empty[PIECE];
    TESS_TRY(tess_raster_samples(raster->band, y, x, h, w, values, error));
    for (int64_t first = 0; first < h * w; first += PIECE) {
        const int64_t some = tess_min_i64(PIECE, h * w - first);
        tess_void_samples(&raster->info.rule, values + first, some, empty);
        for (int64_t i = 0; i < some; i++)
            values[first + i] = empty[i] ? (double)NAN : values[first + i];
    }
    return raster->marks && !raster->info.alpha ? apply_marks(raster, y, x, h, w, values, error) : TESS_OK;
}

void tess_raster_watch(tess_raster *raster, tess_void_watch *watch)
{
    raster->watch = watch;
}

void tess_raster_add_marks(tess_raster *raster, const tess_void_watch *watch)
{
    tess_void_rule_add(&raster->info.rule, watch);
}

tess_status tess_raster_read(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w, double *values,
                             uint8_t *flags, tess_error *error)
{
    const tess_raster_info *info = &raster->info;
    if (y < 0 || x < 0 || h < 1 || w < 1 || y > info->height - h || x > info->width - w)
        return tess_fail(error, TESS_INTERNAL, "%s: a window outside the raster", raster->path);
    const double start = tess_trace_begin(raster->memory->trace);
    tess_raster_lock();
    const tess_status status =
        (raster->warp ? read_warped : read_window)(raster, y, x, h, w, values, flags, error);
    tess_raster_unlock();
    tess_trace_end(raster->memory->trace, TESS_TRACE_READ, "read a window", start);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, raster->path);
}

tess_status tess_raster_read_own(tess_raster *raster, int64_t y, int64_t rows, double *values, uint8_t *flags,
                                 tess_error *error)
{
    const tess_raster_info *info = &raster->info;
    if (y < 0 || rows < 1 || y > info->own_height - rows)
        return tess_fail(error, TESS_INTERNAL, "%s: rows outside the raster", raster->path);
    tess_raster_lock();
    const tess_status status = read_window(raster, y, 0, rows, info->own_width, values, flags, error);
    tess_raster_unlock();
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, raster->path);
}

static tess_status draw_sample(tess_raster *raster, GDALRasterBandH band, double *samples, int64_t *count,
                               tess_error *error)
{
    const tess_raster_info *info = &raster->info;
    const int64_t h = tess_min_i64(SIDE, info->height), w = tess_min_i64(SIDE, info->width);
    const int64_t down = tess_min_i64(WINDOWS, info->height / h),
                  across = tess_min_i64(WINDOWS, info->width / w);
    for (int64_t i = 0; i < down; i++)
        for (int64_t j = 0; j < across; j++) {
            const int64_t y = down > 1 ? (info->height - h) * i / (down - 1) : 0,
                          x = across > 1 ? (info->width - w) * j / (across - 1) : 0;
            TESS_TRY(tess_stop_check(raster->stop, error));
            TESS_TRY(tess_raster_samples(band, y, x, h, w, samples + *count, error));
            *count += h * w;
        }
    return TESS_OK;
}

/* Pixels of a band from all over the raster. */
static tess_status take_sample(tess_raster *raster, GDALRasterBandH band, tess_block *samples, int64_t *count,
                               tess_error *error)
{
    *count = 0;
    TESS_TRY(tess_block_alloc(raster->memory, samples, TESS_MEM_HOST,
                              sizeof(double) * WINDOWS * WINDOWS * SIDE * SIDE, error));
    const tess_status status = draw_sample(raster, band, samples->data, count, error);
    if (status != TESS_OK)
        tess_block_free(samples);
    return status;
}

tess_status tess_raster_sample(tess_raster *raster, tess_error *error)
{
    int64_t count;
    tess_block samples = {0};
    TESS_TRY(take_sample(raster, raster->band, &samples, &count, error));
    raster->info.sampled = tess_void_find_limits(&raster->info.rule, samples.data, count);
    tess_block_free(&samples);
    return TESS_OK;
}

tess_status tess_raster_find_opaque(tess_raster *raster, tess_error *error)
{
    int64_t count;
    tess_block samples = {0};
    const GDALDataType type = raster->marks ? tess_gdal.GDALGetRasterDataType(raster->marks) : GDT_Byte;
    const tess_dtype dtype = type == GDT_Byte                             ? TESS_U8
                             : type == GDT_UInt16                         ? TESS_U16
                             : type == GDT_Float32 || type == GDT_Float64 ? TESS_F32
                                                                          : TESS_I32; /* any other integers */
    double largest = 0;
    if (dtype != TESS_U8 && dtype != TESS_U16) {
        TESS_TRY(take_sample(raster, raster->marks, &samples, &count, error));
        for (int64_t i = 0; i < count; i++)
            largest = fmax(largest, ((const double *)samples.data)[i]);
        tess_block_free(&samples);
    }
    raster->opaque = tess_samples_opaque(dtype, largest);
    return TESS_OK;
}
