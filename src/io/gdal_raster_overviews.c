/* gdal_raster_overviews.c: smaller copies of a raster, inside it or in NAME.ovr, are computed anew from the
 * filled pixels.
 *
 * GDAL seldom stores how they were made. So the old ones are compared with the input: if every pixel is the
 * upper left one of its square, they were made by choosing the nearest; else by an average. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/gdal_raster_output.h"

enum { WINDOWS = 8, SIDE = 16 };

/* Counts pixels of a window of the overview that differ from the nearest of the raster, and valid ones. */
static tess_status compare(const tess_raster *raster, GDALRasterBandH small, int64_t y, int64_t x, int64_t h,
                           int64_t w, int64_t *seen, int64_t *other, tess_error *error)
{
    const double down = (double)raster->info.height / tess_gdal.GDALGetRasterBandYSize(small),
                 across = (double)raster->info.width / tess_gdal.GDALGetRasterBandXSize(small);
    double samples[SIDE * SIDE];
    TESS_TRY(tess_raster_samples(small, y, x, h, w, samples, error));
    for (int64_t r = 0; r < h; r++)
        for (int64_t c = 0; c < w; c++) {
            const int64_t row = (int64_t)(0.5 + (double)(y + r) * down),
                          col = (int64_t)(0.5 + (double)(x + c) * across);
            double full;
            TESS_TRY(tess_raster_samples(raster->band, tess_min_i64(row, raster->info.height - 1),
                                         tess_min_i64(col, raster->info.width - 1), 1, 1, &full, error));
            if (tess_void_sample(&raster->info.rule, full) ||
                tess_void_sample(&raster->info.rule, samples[r * w + c]))
                continue;
            ++*seen;
            *other += samples[r * w + c] != full;
        }
    return TESS_OK;
}

static tess_status guess(tess_raster_output *output, const char **how, tess_error *error)
{
    const tess_raster *raster = output->raster;
    GDALRasterBandH small = tess_gdal.GDALGetOverview(raster->band, 0);
    const char *stored = small ? tess_gdal.GDALGetMetadataItem(small, "RESAMPLING", NULL) : NULL;
    int64_t seen = 0, other = 0;
    *how = "AVERAGE";
    if (stored && stored[0]) {
        *how = stored;
        return TESS_OK;
    }
    const int64_t height = small ? tess_gdal.GDALGetRasterBandYSize(small) : 0,
                  width = small ? tess_gdal.GDALGetRasterBandXSize(small) : 0;
    const int64_t h = tess_min_i64(SIDE, height), w = tess_min_i64(SIDE, width);
    for (int i = 0; small && i < WINDOWS * WINDOWS && other == 0; i++)
        TESS_TRY(compare(raster, small, (height - h) * (i / WINDOWS) / (WINDOWS - 1),
                         (width - w) * (i % WINDOWS) / (WINDOWS - 1), h, w, &seen, &other, error));
    if (seen > 0 && other == 0)
        *how = "NEAREST";
    return TESS_OK;
}

static tess_status rebuild(GDALRasterBandH band, const char *how, tess_stop *stop, tess_error *error)
{
    GDALRasterBandH smaller[TESS_RASTER_MOST_OVERVIEWS];
    const int count = tess_gdal.GDALGetOverviewCount(band);
    if (count > TESS_RASTER_MOST_OVERVIEWS)
        return tess_fail(error, TESS_UNSUPPORTED, "has %d overviews; at most %d are rebuilt", count,
                         TESS_RASTER_MOST_OVERVIEWS);
    for (int i = 0; i < count; i++)
        smaller[i] = tess_gdal.GDALGetOverview(band, i);
    if (count == 0)
        return TESS_OK;
    tess_gdal.CPLErrorReset();
    const CPLErr result =
        tess_gdal.GDALRegenerateOverviews(band, count, smaller, how, tess_raster_progress, stop);
    TESS_TRY(tess_stop_check(stop, error));
    if (result == CE_None && tess_gdal.CPLGetLastErrorType() < CE_Failure)
        return TESS_OK;
    return tess_gdal_fail(error, TESS_IO_FAILED, "its overviews cannot be rebuilt");
}

tess_status tess_raster_overviews(tess_raster_output *output, tess_stop *stop, tess_error *error)
{
    char note[96];
    const char *how = output->resampling;
    if (tess_gdal.GDALGetOverviewCount(output->band) == 0)
        return TESS_OK;
    if (!how)
        TESS_TRY(guess(output, &how, error));
    if (output->marks) /* first: averages leave out void pixels */
        TESS_TRY(rebuild(output->marks, "NEAREST", stop, error));
    TESS_TRY(rebuild(output->band, how, stop, error));
    snprintf(note, sizeof note, "overviews rebuilt by %s", how);
    tess_raster_note(output, note);
    return TESS_OK;
}
