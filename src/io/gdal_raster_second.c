/* gdal_raster_second.c: another elevation map on the grid of a raster, whatever its coordinate system,
 * resolution and extent.
 *
 * GDAL's warper computes a window at a time into the caller's memory. A window that needs many pixels of a finer
 * map is cut, so that the warper's own buffers stay within a limit that is known beforehand. Between systems
 * the transformation is exact to an eighth of a pixel, as gdalwarp's. Void pixels of the other map never enter a
 * value: the warper takes one nodata value, and a map may have several marks. So it reads from a VRT in memory, whose
 * samples are the map's, but NaN in all voids. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "io/gdal_raster.h"

/* The warper holds for each pixel of the source 8 bytes of value and 4 of density, and some bits. */
enum { SOURCE_PIXELS = 1 << 20, BYTES_A_PIXEL = 16, REACH = 8 };

struct tess_raster_warp {
    void *exact, *approximate; /* transformers */
    GDALWarpOptions *options;
    GDALWarpOperationH operation;
    VRTDatasetH heights; /* the band, NaN in voids; then the alpha band, if there is one */
};

void tess_raster_warp_close(tess_raster *raster)
{
    tess_raster_warp *warp = raster->warp;
    if (!warp)
        return;
    if (warp->operation)
        tess_gdal.GDALDestroyWarpOperation(warp->operation);
    if (warp->options)
        tess_gdal.GDALDestroyWarpOptions(warp->options);
    if (warp->heights)
        tess_gdal.GDALClose(warp->heights);
    if (warp->approximate)
        tess_gdal.GDALDestroyApproxTransformer(warp->approximate);
    if (warp->exact)
        tess_gdal.GDALDestroyGenImgProjTransformer(warp->exact);
    tess_small_free(warp);
    raster->warp = NULL;
}

static tess_status check_place(const tess_raster_info *grid, const tess_raster_info *other, tess_error *error)
{
    if (!grid->has_transform || !other->has_transform)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "cannot be laid over the raster: %s has no transform; write one with gdal_edit.py -a_ullr",
            grid->has_transform ? "it" : "the raster");
    if (!grid->crs[0] != !other->crs[0])
        return tess_fail(
            error, TESS_BAD_INPUT,
            "cannot be laid over the raster: %s has no coordinate system; write it with gdal_edit.py "
            "-a_srs",
            grid->crs[0] ? "it" : "the raster");
    return TESS_OK;
}

static tess_status make_transformers(tess_raster_warp *warp, tess_raster *second,
                                     const tess_raster_info *grid, tess_error *error)
{
    char **options = NULL;
    if (grid->crs[0]) {
        options = tess_gdal.CSLSetNameValue(options, "SRC_SRS", second->info.crs);
        options = tess_gdal.CSLSetNameValue(options, "DST_SRS", grid->crs);
    }
    tess_gdal.CPLErrorReset();
    warp->exact = tess_gdal.GDALCreateGenImgProjTransformer2(second->dataset, NULL, options);
    tess_gdal.CSLDestroy(options);
    if (!warp->exact)
        return tess_gdal_fail(error, TESS_BAD_INPUT,
                              "cannot be laid over the raster: no way between their coordinate systems");
    tess_gdal.GDALSetGenImgProjTransformerDstGeoTransform(warp->exact, grid->transform);
    warp->approximate =
        tess_gdal.GDALCreateApproxTransformer(tess_gdal.GDALGenImgProjTransform, warp->exact, 0.125);
    return warp->approximate ? TESS_OK
                             : tess_fail(error, TESS_NO_MEMORY, "no memory to lay it over the raster");
}

/* Called by the warper, while the lock is held. */
static CPLErr read_heights(void *raster, int x, int y, int w, int h, void *values)
{
    tess_error error;
    return tess_raster_heights(raster, y, x, h, w, values, &error) == TESS_OK ? CE_None : CE_Failure;
}

static tess_status make_heights(tess_raster_warp *warp, tess_raster *second, tess_error *error)
{
    const tess_raster_info *info = &second->info;
    const int w = (int)info->width, h = (int)info->height;
    warp->heights = tess_gdal.VRTCreate(w, h);
    bool good = warp->heights && tess_gdal.VRTAddBand(warp->heights, GDT_Float64, NULL) == CE_None &&
                tess_gdal.VRTAddFuncSource(tess_gdal.GDALGetRasterBand(warp->heights, 1), read_heights,
                                           second, VRT_NODATA_UNSET) == CE_None;
    if (good && info->alpha) {
        GDALRasterBandH alpha = tess_gdal.GDALGetRasterBand(second->dataset, info->alpha);
        good = tess_gdal.VRTAddBand(warp->heights, tess_gdal.GDALGetRasterDataType(alpha), NULL) == CE_None &&
               tess_gdal.VRTAddSimpleSource(tess_gdal.GDALGetRasterBand(warp->heights, 2), alpha, 0, 0, w, h,
                                            0, 0, w, h, "near", VRT_NODATA_UNSET) == CE_None;
    }
    return good ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "no memory to lay it over the raster");
}

static tess_status make_operation(tess_raster_warp *warp, tess_raster *second, tess_resampling resampling,
                                  tess_error *error)
{
    const tess_raster_info *info = &second->info;
    GDALWarpOptions *o = warp->options = tess_gdal.GDALCreateWarpOptions();
    o->eWorkingDataType = GDT_Float64;
    o->eResampleAlg = resampling == TESS_CUBIC ? GRA_Cubic : GRA_Bilinear;
    o->dfWarpMemoryLimit = (double)SOURCE_PIXELS * BYTES_A_PIXEL;
    o->hSrcDS = warp->heights;
    o->nBandCount = 1;
    o->panSrcBands = tess_gdal.CPLCalloc(1, sizeof(int)); /* freed with the options */
    o->panDstBands = tess_gdal.CPLCalloc(1, sizeof(int));
    o->panSrcBands[0] = 1;
    o->panDstBands[0] = 1;
    if (info->alpha) {
        char opaque[32];
        snprintf(opaque, sizeof opaque, "%.9g", second->opaque);
        o->nSrcAlphaBand = 2;
        o->papszWarpOptions = tess_gdal.CSLSetNameValue(o->papszWarpOptions, "SRC_ALPHA_MAX", opaque);
    }
    tess_gdal.GDALWarpInitSrcNoDataReal(o, (double)NAN);
    tess_gdal.GDALWarpInitDstNoDataReal(o, (double)NAN);
    o->pTransformerArg = warp->approximate;
    o->pfnTransformer = tess_gdal.GDALApproxTransform;
    tess_gdal.CPLErrorReset();
    warp->operation = tess_gdal.GDALCreateWarpOperation(o);
    return warp->operation ? TESS_OK
                           : tess_gdal_fail(error, TESS_BAD_INPUT, "cannot be laid over the raster");
}

/* How many pixels of the source a pixel of the window needs, along each side: from the transform of its centre
 * and corners. Points outside the transformation count for nothing. */
static double source_pixels(const tess_raster_warp *warp, int64_t y, int64_t x, int64_t h, int64_t w)
{
    double most = 1;
    for (int i = 0; i < 9; i++) {
        const double px = (double)x + (double)w * (i % 3) / 2, py = (double)y + (double)h * (i / 3) / 2;
        double xs[3] = {px, px + 1, px}, ys[3] = {py, py, py + 1}, zs[3] = {0};
        int good[3] = {0};
        tess_gdal.GDALGenImgProjTransform(warp->exact, TRUE, 3, xs, ys, zs, good);
        if (good[0] && good[1] && good[2])
            most = fmax(most, fmax(fabs(xs[1] - xs[0]) + fabs(xs[2] - xs[0]),
                                   fabs(ys[1] - ys[0]) + fabs(ys[2] - ys[0])));
    }
    return most;
}

static tess_status warp_piece(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w, double *values,
                              int64_t stride, double *buffer, tess_error *error)
{
    for (int64_t i = 0; i < h * w; i++)
        buffer[i] = NAN;
    tess_gdal.CPLErrorReset();
    const CPLErr result = tess_gdal.GDALWarpRegionToBuffer(raster->warp->operation, (int)x, (int)y, (int)w,
                                                           (int)h, buffer, GDT_Float64, 0, 0, 0, 0);
    if (result != CE_None || tess_gdal.CPLGetLastErrorType() >= CE_Failure)
        return tess_gdal_fail(error, TESS_BAD_INPUT, "damaged, truncated, or changed while it was read");
    for (int64_t r = 0; r < h; r++)
        memcpy(values + r * stride, buffer + r * w, (size_t)w * sizeof *values);
    return TESS_OK;
}

tess_status tess_raster_warp_read(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w,
                                  double *values, tess_error *error)
{
    enum { SIDE = 256 };
    double *buffer = raster->mask.piece.data;
    for (int64_t r = 0; r < h; r += SIDE)
        for (int64_t c = 0; c < w; c += SIDE) {
            const int64_t rows = tess_min_i64(SIDE, h - r), columns = tess_min_i64(SIDE, w - c);
            const double need = source_pixels(raster->warp, y + r, x + c, rows, columns);
            int64_t side = (int64_t)(sqrt((double)SOURCE_PIXELS) / need) - REACH;
            side = tess_min_i64(tess_max_i64(side, 1), SIDE);
            for (int64_t i = 0; i < rows; i += side)
                for (int64_t j = 0; j < columns; j += side)
                    TESS_TRY(warp_piece(raster, y + r + i, x + c + j, tess_min_i64(side, rows - i),
                                        tess_min_i64(side, columns - j), values + (r + i) * w + c + j, w,
                                        buffer, error));
        }
    return TESS_OK;
}

static tess_status lay_over(tess_raster *second, const tess_raster *raster, tess_resampling resampling,
                            tess_error *error)
{
    enum { SIDE = 256 };
    const tess_raster_info *grid = &raster->info;
    tess_raster_info *info = &second->info;
    TESS_TRY(check_place(grid, info, error));
    tess_raster_warp *warp = second->warp = tess_small_alloc(1, sizeof *warp);
    if (!warp)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    TESS_TRY(make_transformers(warp, second, grid, error));
    TESS_TRY(make_heights(warp, second, error));
    TESS_TRY(make_operation(warp, second, resampling, error));
    TESS_TRY(tess_block_alloc(second->memory, &second->mask.piece, TESS_MEM_HOST,
                              SIDE * SIDE * sizeof(double), error));
    const int64_t buffers = (int64_t)SOURCE_PIXELS * BYTES_A_PIXEL + SIDE * SIDE * BYTES_A_PIXEL;
    TESS_TRY(tess_gdal_have_room(TESS_GDAL_ROOM + buffers, error));
    tess_gdal_cache_share(second->memory, 0, buffers);
    second->counted += buffers;
    info->held_bytes += (size_t)buffers + second->mask.piece.bytes;
    info->height = grid->height;
    info->width = grid->width;
    memcpy(info->transform, grid->transform, sizeof info->transform);
    return TESS_OK;
}

/* True when both have the same grid, or neither has a place and the sizes agree: then nothing is warped. */
static bool same_grid(const tess_raster_info *a, const tess_raster_info *b)
{
    if (a->height != b->height || a->width != b->width || a->has_transform != b->has_transform)
        return false;
    return strcmp(a->crs, b->crs) == 0 &&
           (!a->has_transform || memcmp(a->transform, b->transform, sizeof a->transform) == 0);
}

tess_status tess_raster_second(tess_memory *memory, const char *path, const tess_raster *raster,
                               const tess_raster_settings *settings, tess_resampling resampling,
                               tess_raster **out, tess_error *error)
{
    tess_raster *second = NULL;
    tess_raster_settings own = *settings;
    own.mask = NULL; /* a mask is for the raster's grid */
    *out = NULL;
    TESS_TRY(tess_raster_open(memory, path, &own, &second, error));
    tess_status status = TESS_OK;
    if (!same_grid(&raster->info, &second->info)) {
        tess_raster_lock();
        status = lay_over(second, raster, resampling, error);
        tess_raster_unlock();
    }
    if (status == TESS_OK) {
        *out = second;
        return TESS_OK;
    }
    tess_raster_close(second);
    return tess_fail_prefix(error, status, path);
}
