/* without_gdal_raster.c: replaces gdal_raster*.c in a build without GDAL's headers, as without_gdal.c does for
 * images. No raster can be opened, so the other functions are never reached. */
#if !__has_include(<gdal.h>) && !__has_include(<gdal/gdal.h>)
#include "io/raster.h"

static tess_status refuse(const char *path, tess_error *error)
{
    return tess_fail(
        error, TESS_UNSUPPORTED,
        "%s: this build of Tessera has no GDAL, which rasters need; install libgdal-dev and build again",
        path);
}

tess_status tess_raster_open(tess_memory *memory, const char *path, const tess_raster_settings *settings,
                             tess_raster **out, tess_error *error)
{
    (void)memory, (void)settings;
    *out = NULL;
    return refuse(path, error);
}

tess_status tess_raster_second(tess_memory *memory, const char *path, const tess_raster *raster,
                               const tess_raster_settings *settings, tess_resampling resampling,
                               tess_raster **out, tess_error *error)
{
    (void)memory, (void)raster, (void)settings, (void)resampling;
    *out = NULL;
    return refuse(path, error);
}

const tess_raster_info *tess_raster_describe(const tess_raster *raster)
{
    static const tess_raster_info none;
    (void)raster;
    return &none;
}

tess_status tess_raster_read(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w, double *values,
                             uint8_t *flags, tess_error *error)
{
    (void)raster, (void)y, (void)x, (void)h, (void)w, (void)values, (void)flags;
    return refuse("raster", error);
}

tess_status tess_raster_read_own(tess_raster *raster, int64_t y, int64_t rows, double *values, uint8_t *flags,
                                 tess_error *error)
{
    (void)raster, (void)y, (void)rows, (void)values, (void)flags;
    return refuse("a raster", error);
}

void tess_raster_watch(tess_raster *raster, tess_void_watch *watch)
{
    (void)raster, (void)watch;
}

void tess_raster_add_marks(tess_raster *raster, const tess_void_watch *watch)
{
    (void)raster, (void)watch;
}

void tess_raster_close(tess_raster *raster)
{
    (void)raster;
}

tess_status tess_raster_output_plan(const tess_raster *raster, const char *path,
                                    const tess_raster_target *target, tess_raster_bytes *bytes,
                                    tess_error *error)
{
    (void)raster, (void)target, (void)bytes;
    return refuse(path, error);
}

tess_status tess_raster_output_create(tess_raster *raster, const char *path, const tess_raster_target *target,
                                      tess_stop *stop, tess_raster_output **out, tess_error *error)
{
    (void)raster, (void)target, (void)stop;
    *out = NULL;
    return refuse(path, error);
}

tess_status tess_raster_like(tess_raster *raster, const char *path, const char *description,
                             tess_raster_output **out, tess_error *error)
{
    (void)raster, (void)description;
    *out = NULL;
    return refuse(path, error);
}

size_t tess_raster_like_bytes(const tess_raster *raster)
{
    (void)raster;
    return 0;
}

tess_status tess_raster_output_write(tess_raster_output *output, int64_t y, int64_t x, int64_t h, int64_t w,
                                     const double *values, const uint8_t *flags, tess_error *error)
{
    (void)output, (void)y, (void)x, (void)h, (void)w, (void)values, (void)flags;
    return refuse("raster", error);
}

tess_status tess_raster_output_read(tess_raster_output *output, int64_t y, int64_t x, int64_t h, int64_t w,
                                    double *values, tess_error *error)
{
    (void)output, (void)y, (void)x, (void)h, (void)w, (void)values;
    return refuse("raster", error);
}

tess_status tess_raster_output_commit(tess_raster_output *output, tess_stop *stop, char *notes, size_t room,
                                      tess_error *error)
{
    (void)output, (void)stop, (void)notes, (void)room;
    return refuse("raster", error);
}

void tess_raster_output_abandon(tess_raster_output *output)
{
    (void)output;
}

#else
typedef int tess_gdal_rasters_are_there; /* C requires one declaration in a file */
#endif
