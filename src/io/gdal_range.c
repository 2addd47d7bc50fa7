/* gdal_range.c: finds doubles outside the range of float32, and converts nodata values outside that range.
 *
 * GDAL converts such doubles to the largest float or to infinity. Where that float appears and is not a nodata
 * value, the doubles from there on are read again in pieces, so that true infinities are kept. */
#include "io/gdal_range.h"

#include <float.h>
#include <math.h>

#include "base/checked.h"

enum { PIECE = 256 };

static bool is_suspect(const tess_gdal_void *v, int channel, float sample)
{
    if (!(fabsf(sample) >= FLT_MAX))
        return false;
    return !(v->nodata && v->nodata[channel].any && tess_nodata_same_float(sample, v->nodata[channel].value));
}

static tess_status read_piece(GDALRasterBandH band, int64_t y, int64_t x, int64_t count, GDALDataType type,
                              void *to, tess_error *error)
{
    if (tess_gdal.GDALRasterIO(band, GF_Read, (int)x, (int)y, (int)count, 1, to, (int)count, 1, type, 0, 0) ==
        CE_None)
        return TESS_OK;
    return tess_gdal_fail(error, TESS_BAD_INPUT, "damaged or truncated");
}

static tess_status check_piece(const tess_gdal_void *v, int channel, int64_t y, int64_t x, int64_t count,
                               const float *samples, tess_error *error)
{
    double values[PIECE];
    unsigned char valid[PIECE];
    const int64_t step = v->info.channels;
    TESS_TRY(read_piece(tess_gdal.GDALGetRasterBand(v->dataset, channel + 1), y, x, count, GDT_Float64,
                        values, error));
    if (v->masks)
        TESS_TRY(read_piece(tess_gdal_mask_of(v->dataset, v->masks > 1 ? channel + 1 : 1), y, x, count,
                            GDT_Byte, valid, error));
    for (int64_t i = 0; i < count; i++)
        if (is_suspect(v, channel, samples[i * step]) && tess_beyond_float(values[i]) &&
            !(v->masks && !valid[i]))
            return tess_fail_beyond_float(error);
    return TESS_OK;
}

/* Replaces nodata samples, whose double does not fit float32, by the float that marks them in the result. */
static void convert_nodata(const tess_gdal_void *v, int64_t pixels, float *rows)
{
    for (int c = 0; v->nodata && c < v->info.channels; c++) {
        const double nodata = v->nodata[c].value;
        if (!v->nodata[c].any || !tess_beyond_float(nodata))
            continue;
        for (int64_t i = c; i < pixels * v->info.channels; i += v->info.channels)
            if (tess_nodata_same_float(rows[i], nodata))
                rows[i] = (float)tess_gdal_written_nodata(&v->info, nodata);
    }
}

tess_status tess_gdal_check_range(const tess_gdal_void *v, int64_t first, int64_t count, float *rows,
                                  tess_error *error)
{
    const int64_t width = v->info.width, step = v->info.channels;
    convert_nodata(v, count * width, rows);
    for (int64_t y = 0; y < count; y++) {
        const float *row = rows + y * width * step;
        for (int c = 0; c < v->info.channels; c++)
            for (int64_t x = 0; x < width; x++) {
                if (!is_suspect(v, c, row[x * step + c]))
                    continue;
                const int64_t some = tess_min_i64(PIECE, width - x);
                TESS_TRY(check_piece(v, c, first + y, x, some, row + x * step + c, error));
                x += some - 1;
            }
    }
    return TESS_OK;
}
