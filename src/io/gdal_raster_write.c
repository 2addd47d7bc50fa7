/* gdal_raster_write.c: writes filled pixels into the work file.
 *
 * Only runs of flagged pixels are passed to GDAL, so valid pixels never leave its blocks. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/trace.h"
#include "io/gdal_raster_output.h"

enum { RUN = 1024 };

static tess_status put(GDALRasterBandH band, int64_t y, int64_t x, int64_t count, double *samples,
                       tess_error *error)
{
    if (tess_gdal.GDALRasterIO(band, GF_Write, (int)x, (int)y, (int)count, 1, samples, (int)count, 1,
                               GDT_Float64, 0, 0) == CE_None &&
        tess_gdal.CPLGetLastErrorType() < CE_Failure)
        return TESS_OK;
    return tess_gdal_fail_write(error);
}

static tess_status write_run(tess_raster_output *output, int64_t y, int64_t x, int64_t count,
                             const double *values, tess_error *error)
{
    double samples[RUN];
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(values[i]))
            return tess_fail(error, TESS_INTERNAL, "the value for pixel (%lld, %lld) is not finite",
                             (long long)y, (long long)(x + i));
        samples[i] = tess_void_to_sample(&output->rule, (values[i] - output->offset) / output->scale);
    }
    TESS_TRY(put(output->band, y, x, count, samples, error));
    for (int64_t i = 0; output->marks && i < count; i++)
        samples[i] = output->mark;
    return output->marks ? put(output->marks, y, x, count, samples, error) : TESS_OK;
}

static tess_status write_row(tess_raster_output *output, int64_t y, int64_t x, int64_t w,
                             const double *values, const uint8_t *flags, tess_error *error)
{
    for (int64_t i = 0; i < w;) {
        int64_t end = i;
        while (end < w && end - i < RUN && (!flags || flags[end] == TESS_PIXEL_VOID))
            end++;
        if (end > i) {
            TESS_TRY(write_run(output, y, x + i, end - i, values + i, error));
            output->changed = true;
        }
        i = tess_max_i64(end, i + 1);
    }
    return TESS_OK;
}

tess_status tess_raster_output_write(tess_raster_output *output, int64_t y, int64_t x, int64_t h, int64_t w,
                                     const double *values, const uint8_t *flags, tess_error *error)
{
    if (y < 0 || x < 0 || h < 1 || w < 1 || y > output->height - h || x > output->width - w)
        return tess_fail(error, TESS_INTERNAL, "%s: a window outside the raster", output->path);
    tess_status status = TESS_OK;
    tess_trace *trace = output->raster->memory->trace;
    const double start = tess_trace_begin(trace);
    tess_raster_lock();
    tess_gdal.CPLErrorReset();
    for (int64_t r = 0; r < h && status == TESS_OK; r++)
        status = write_row(output, y + r, x, w, values + r * w, flags ? flags + r * w : NULL, error);
    tess_raster_unlock();
    tess_trace_end(trace, TESS_TRACE_WRITE, "write a window", start);
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, output->path);
}

tess_status tess_raster_output_read(tess_raster_output *output, int64_t y, int64_t x, int64_t h, int64_t w,
                                    double *values, tess_error *error)
{
    if (y < 0 || x < 0 || h < 1 || w < 1 || y > output->height - h || x > output->width - w)
        return tess_fail(error, TESS_INTERNAL, "%s: a window outside the raster", output->path);
    tess_raster_lock();
    const tess_status status = tess_raster_samples(output->band, y, x, h, w, values, error);
    tess_raster_unlock();
    for (int64_t i = 0; status == TESS_OK && i < h * w; i++)
        values[i] = tess_void_sample(&output->rule, values[i]) ? (double)NAN
                                                               : values[i] * output->scale + output->offset;
    return status == TESS_OK ? TESS_OK : tess_fail_prefix(error, status, output->path);
}
