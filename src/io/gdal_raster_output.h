/* gdal_raster_output.h: a raster that is being written (private to gdal_raster*.c). */
#ifndef TESS_IO_GDAL_RASTER_OUTPUT_H
#define TESS_IO_GDAL_RASTER_OUTPUT_H

#include "base/temp.h"
#include "io/gdal_raster.h"

/* How the result comes about. The work file takes the filled pixels. */
typedef struct tess_raster_way {
    const char *driver; /* of the result */
    bool bytes;         /* the work file is a copy of the input's bytes; else GDAL's CreateCopy as GTiff */
    bool convert;       /* at commit the work file is copied once more, as `driver` */
    bool big;           /* a classic TIFF might grow beyond 4 GiB: a BigTIFF is made */
    bool lossy;         /* the input's compression would change valid pixels: another one is used */
} tess_raster_way;

struct tess_raster_output {
    tess_raster *raster;
    tess_raster_target settings; /* texts are not owned, and used only while creating */
    tess_raster_way way;
    tess_temp *temp;
    char *path, *target; /* as named; links resolved */
    char *result;        /* with `convert`: the second temporary name */
    char **options;      /* of that copy; GDAL's */
    char *resampling;    /* NULL: to be found out */
    GDALDatasetH dataset;
    GDALRasterBandH band;
    GDALRasterBandH marks; /* mask or alpha band to be set where pixels are filled; NULL: none */
    double mark;
    tess_void_rule rule;
    double scale, offset;
    int64_t height, width;
    int64_t cache, counted;
    int64_t busy; /* counted in addition while GDAL copies or rebuilds */
    bool changed, like;
    char notes[256];
};

tess_status tess_raster_way_find(const tess_raster *raster, const char *target,
                                 const tess_raster_target *settings, tess_raster_way *way,
                                 tess_error *error) TESS_MUST_CHECK;
/* Creation options, owned by the caller (CSLDestroy): of the work file and of the converted result. */
char **tess_raster_work_options(const tess_raster *raster, const tess_raster_way *way,
                                const tess_raster_target *settings);
char **tess_raster_result_options(const tess_raster *raster, const tess_raster_way *way, const char *target,
                                  const tess_raster_target *settings);
/* A GDALProgressFunc whose argument is a tess_stop or NULL. */
int CPL_STDCALL tess_raster_progress(double part, const char *text, void *stop);

/* Rebuilds all overviews of the band and its mask, and notes how. */
tess_status tess_raster_overviews(tess_raster_output *output, tess_stop *stop,
                                  tess_error *error) TESS_MUST_CHECK;
void tess_raster_note(tess_raster_output *output, const char *text);
void tess_raster_output_free(tess_raster_output *output);

#endif
