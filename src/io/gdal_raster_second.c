/* gdal_raster_second.c: another elevation map on the grid of a raster, whatever its coordinate system,
 * resolution and extent.
 *
 * GDAL's warper computes a window at a time into the caller's memory. A window that needs many pixels of a finer
 * map is cut, so that the warper's own buffers stay within a limit that is known beforehand. Between systems
 * the transformation is exact to an eighth of a pixel, as gdalwarp's. Void pixels of the other map never enter a
 * value: the warper gets its nodata value. */
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
    int64_t height, width; /* of the grid */
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
    if (warp->approximate)
        tess_gdal.GDALDestroyApproxTransformer(warp->approximate);
    if (warp->exact)
        tess_gdal.GDALDestroyGenImgProjTransformer(warp->exact);
    tess_small_free(warp);
    raster->warp = NULL;
}

/* Without a declared value, the marker that occurs most among the sampled pixels is given to the warper. */
static double find_marker(tess_raster *second, bool *found)
{
    enum { KINDS = TESS_VOID_MARKS, SIDE = 64, WINDOWS = 12 };
    const tess_raster_info *info = &second->info;
    int64_t counts[KINDS] = {0}, best = 0;
    double samples[SIDE * SIDE];
    const int64_t h = tess_min_i64(SIDE, info->height), w = tess_min_i64(SIDE, info->width);
    for (int i = 0; i < WINDOWS * WINDOWS; i++) {
        const int64_t y = (info->height - h) * (i / WINDOWS) / (WINDOWS - 1),
                      x = (info->width - w) * (i % WINDOWS) / (WINDOWS - 1);
        if (tess_raster_samples(second->band, y, x, h, w, samples, NULL) != TESS_OK)
            break;
        for (int64_t p = 0; p < h * w; p++)
            for (int k = 0; k < KINDS; k++)
                counts[k] +=
                    samples[p] == tess_void_marks[k] && tess_void_sample(&info->rule, tess_void_marks[k]);
    }
    for (int k = 1; k < KINDS; k++)
        best = counts[k] > counts[best] ? k : best;
    *found = counts[best] > 0;
    return tess_void_marks[best];
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

static tess_status make_operation(tess_raster_warp *warp, tess_raster *second, tess_resampling resampling,
                                  tess_error *error)
{
    tess_raster_info *info = &second->info;
    GDALWarpOptions *o = warp->options = tess_gdal.GDALCreateWarpOptions();
    bool marker = false;
    if (info->rule.usual) {
        const double value = find_marker(second, &marker);
        info->rule.exact = marker;
        info->rule.value = value;
    }
    o->eWorkingDataType = GDT_Float64;
    o->eResampleAlg = resampling == TESS_CUBIC ? GRA_Cubic : GRA_Bilinear;
    o->dfWarpMemoryLimit = (double)SOURCE_PIXELS * BYTES_A_PIXEL;
    o->hSrcDS = second->dataset;
    o->nBandCount = 1;
    o->panSrcBands = tess_gdal.CPLCalloc(1, sizeof(int)); /* freed with the options */
    o->panDstBands = tess_gdal.CPLCalloc(1, sizeof(int));
    o->panSrcBands[0] = info->band;
    o->panDstBands[0] = 1;
    if (info->alpha) { /* a mask band needs no mention */
        char opaque[32];
        snprintf(opaque, sizeof opaque, "%.9g", second->opaque);
        o->nSrcAlphaBand = info->alpha;
        o->papszWarpOptions = tess_gdal.CSLSetNameValue(o->papszWarpOptions, "SRC_ALPHA_MAX", opaque);
    }
    if (info->rule.exact || info->dtype == TESS_F32 || info->dtype == TESS_F64)
        tess_gdal.GDALWarpInitSrcNoDataReal(o, info->rule.exact ? info->rule.value : (double)NAN);
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

/* The warper takes one value for void, which is the declared one. */
static tess_status check_marks(const tess_raster_info *info, tess_error *error)
{
    int mark = info->rule.usual ? TESS_VOID_MARKS : 0;
    while (mark < TESS_VOID_MARKS && !info->rule.marks[mark])
        mark++;
    if (mark == TESS_VOID_MARKS && !info->rule.absurd)
        return TESS_OK;
    char value[32] = "1e20 and beyond";
    if (mark < TESS_VOID_MARKS)
        snprintf(value, sizeof value, "%g", tess_void_marks[mark]);
    return tess_fail(
        error, TESS_BAD_INPUT,
        "has pixels of %s, far from all heights, beside the voids that it declares: give these the same "
        "nodata value",
        value);
}

static tess_status lay_over(tess_raster *second, const tess_raster *raster, tess_resampling resampling,
                            tess_error *error)
{
    enum { SIDE = 256 };
    const tess_raster_info *grid = &raster->info;
    tess_raster_info *info = &second->info;
    TESS_TRY(check_place(grid, info, error));
    TESS_TRY(check_marks(info, error));
    tess_raster_warp *warp = second->warp = tess_small_alloc(1, sizeof *warp);
    if (!warp)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    TESS_TRY(make_transformers(warp, second, grid, error));
    TESS_TRY(make_operation(warp, second, resampling, error));
    TESS_TRY(tess_block_alloc(second->memory, &second->mask.piece, TESS_MEM_HOST,
                              SIDE * SIDE * sizeof(double), error));
    const int64_t buffers = (int64_t)SOURCE_PIXELS * BYTES_A_PIXEL + SIDE * SIDE * BYTES_A_PIXEL;
    TESS_TRY(tess_gdal_have_room(TESS_GDAL_ROOM + buffers, error));
    tess_gdal_cache_share(second->memory, 0, buffers);
    second->counted += buffers;
    info->held_bytes += (size_t)buffers + second->mask.piece.bytes;
    second->marks = NULL; /* the warper applies them */
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
