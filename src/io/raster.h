/* raster.h: random access to one band of a georeferenced raster, and a result that differs from it only in the
 * pixels that were filled.
 *
 * image.h streams rows and creates a new file. Elevation maps need something else: windows in any order from
 * rasters larger than memory, voids told from heights, and an output in which everything but the filled pixels
 * stays as it was. So an output begins as a copy of the input's bytes that is updated in place; only formats
 * that cannot be updated go through GDAL's CreateCopy at the end. Nothing has its final name before commit.
 *
 * All functions may be called from any thread, but those of one raster or output from one at a time; GDAL's
 * work is serialised (its cache is shared by all datasets). */
#ifndef TESS_IO_RASTER_H
#define TESS_IO_RASTER_H

#include "base/mem.h"
#include "base/stop.h"
#include "io/raster_void_watch.h"
#include "tensor/tensor.h"

typedef struct tess_raster tess_raster;               /* owned by the caller: tess_raster_close */
typedef struct tess_raster_output tess_raster_output; /* owned by the caller: commit or abandon */

/* Zero is the usual. */
typedef struct tess_raster_settings {
    int band;                     /* from 1; 0: the only band that is no alpha */
    tess_raster_nodata nodata_is; /* where the nodata value comes from */
    double nodata;                /* with TESS_NODATA_GIVEN */
    const char *mask; /* a raster of the same size, nonzero where pixels are to be filled; or NULL */
    int64_t cache;    /* bytes of GDAL's cache for this raster; 0: what a row of blocks needs */
    tess_stop *stop;  /* polled while pixels from all over the raster are read to open it; or NULL */
} tess_raster_settings;

enum { TESS_RASTER_MOST_OVERVIEWS = 32 };

typedef struct tess_raster_info {
    int64_t height, width;
    int64_t own_height, own_width; /* of the file, where a second map is laid over another grid */
    int bands, band;               /* alpha included; the one that is read, from 1 */
    tess_dtype dtype;              /* of the file: U8, U16, I16, U32, I32, F32 or F64 */
    const char *driver;            /* GDAL's name: "GTiff" */
    bool has_transform;
    double transform[6];  /* GDAL's: x = t[0] + column * t[1] + row * t[2], then y */
    const char *crs;      /* WKT; "" when the file has none */
    bool has_nodata;      /* the file declares one */
    double nodata;        /* as declared, before scale and offset */
    double scale, offset; /* values are sample * scale + offset; 1 and 0 when the file has none */
    bool mask_band;       /* voids are (also) marked by a mask band */
    int alpha;            /* or by an alpha band, which is this one; 0: there is none */
    int marked;           /* bands whose voids the mask or alpha band marks; 1: this one alone */
    bool mask_file;
    tess_void_rule rule; /* what counts as void, in samples of the file */
    int64_t sampled;     /* pixels from which the limits of outliers were found; 0: no such limits */
    int64_t block_height, block_width;
    int overviews;
    size_t held_bytes; /* counted in `memory` while it is open, GDAL's share of cache included */
} tess_raster_info;

/* Flags of tess_raster_read. */
enum {
    TESS_PIXEL_VALID = 0,
    TESS_PIXEL_VOID = 1, /* to be filled */
    TESS_PIXEL_KEPT = 2  /* has no value, but the mask file does not ask for it: stays void */
};

/* Opens a raster for reading. `memory` must outlive it. Messages contain the path. */
tess_status tess_raster_open(tess_memory *memory, const char *path, const tess_raster_settings *settings,
                             tess_raster **out, tess_error *error) TESS_MUST_CHECK;
const tess_raster_info *tess_raster_describe(const tess_raster *raster);
/* Reads a window, which must lie inside the raster: h * w values (scale and offset applied; the value of a
 * pixel without one is NaN) and flags, which may be NULL. Pixels that the mask file marks keep their value. */
tess_status tess_raster_read(tess_raster *raster, int64_t y, int64_t x, int64_t h, int64_t w, double *values,
                             uint8_t *flags, tess_error *error) TESS_MUST_CHECK;
/* `rows` whole rows of the file, where a second map is laid over another grid; else the same as tess_raster_read. */
tess_status tess_raster_read_own(tess_raster *raster, int64_t y, int64_t rows, double *values, uint8_t *flags,
                                 tess_error *error) TESS_MUST_CHECK;
/* From now on watches the samples of windows of the file that are read with flags; NULL: no more. Not owned. */
void tess_raster_watch(tess_raster *raster, tess_void_watch *watch);
/* Changes the rule for all later windows and outputs as the watch says. */
void tess_raster_add_marks(tess_raster *raster, const tess_void_watch *watch);
void tess_raster_close(tess_raster *raster);

/* True if writing to `path` would replace the raster of this name, a file beside it, or a file that it refers to (VRT). */
bool tess_raster_names(const char *raster, const char *path);

/* The largest distance between the corners of a raster and of one of its size with another transform, in its pixels. */
double tess_raster_shift(const tess_raster_info *info, const double other[6]);
#define TESS_RASTER_SAME_PLACE 0.01 /* a distance below this is the rounding of some program */

typedef enum tess_world {
    TESS_WORLD_NONE,
    TESS_WORLD_CENTRE, /* the convention: the centre of the upper left pixel */
    TESS_WORLD_CORNER  /* as dem-fill writes it: a, b, d, e and the corner of that pixel, 10 decimals */
} tess_world;

/* Zero is the usual. */
typedef struct tess_raster_target {
    const char *
        format; /* a GDAL driver ("GTiff", "COG", "ENVI", "HFA", "AAIGrid", "JP2OpenJPEG"); NULL: by suffix */
    const char *const *creation; /* GDAL's creation options, "COMPRESS=ZSTD", terminated by NULL; or NULL */
    const char *resampling;      /* of rebuilt overviews; NULL: as they were, if that can be found out */
    tess_world world;
    bool overwrite; /* the output may be the input */
} tess_raster_target;

/* Bytes that an output holds between create and commit, without the raster's own; and in addition at most while
 * create copies, or commit rebuilds overviews and converts. Both are counted in the raster's memory. */
typedef struct tess_raster_bytes {
    size_t held, commit;
    int64_t disk; /* at most beside the target, while there is a temporary file; an estimate */
} tess_raster_bytes;
tess_status tess_raster_output_plan(const tess_raster *raster, const char *path,
                                    const tess_raster_target *target, tess_raster_bytes *bytes,
                                    tess_error *error) TESS_MUST_CHECK;

/* Begins an output. `raster` must stay open until commit or abandon. `stop` (may be NULL) ends a long copy. */
tess_status tess_raster_output_create(tess_raster *raster, const char *path, const tess_raster_target *target,
                                      tess_stop *stop, tess_raster_output **out,
                                      tess_error *error) TESS_MUST_CHECK;
/* A new Float32 GeoTIFF on the raster's grid, void (NaN) where nothing is written: for a standard deviation.
 * `description` names its band. */
tess_status tess_raster_like(tess_raster *raster, const char *path, const char *description,
                             tess_raster_output **out, tess_error *error) TESS_MUST_CHECK;
size_t tess_raster_like_bytes(const tess_raster *raster);
/* Writes the pixels of a window whose flag is TESS_PIXEL_VOID; `flags` NULL: all. Integers are rounded and
 * clamped; no written pixel equals the nodata value, or anything that the rule takes for void. */
tess_status tess_raster_output_write(tess_raster_output *output, int64_t y, int64_t x, int64_t h, int64_t w,
                                     const double *values, const uint8_t *flags,
                                     tess_error *error) TESS_MUST_CHECK;
/* Reads raw values back from the unfinished output, as tess_raster_read: for seams and checks. */
tess_status tess_raster_output_read(tess_raster_output *output, int64_t y, int64_t x, int64_t h, int64_t w,
                                    double *values, tess_error *error) TESS_MUST_CHECK;
/* Rebuilds overviews, removes statistics, converts if needed, and gives the files their final names. Frees the
 * output in any case; after a failure nothing has changed under the final name. */
tess_status tess_raster_output_commit(tess_raster_output *output, tess_stop *stop, char *notes, size_t room,
                                      tess_error *error) TESS_MUST_CHECK;
/* Removes everything that was written. Accepts NULL. */
void tess_raster_output_abandon(tess_raster_output *output);

/* Another elevation map, warped to the raster's grid: tess_raster_read reads from it as from the raster itself,
 * void where it has no value. Its voids, also those that are added to its rule later, never enter a value.
 * settings->mask is ignored. */
typedef enum tess_resampling { TESS_BILINEAR, TESS_CUBIC } tess_resampling;
tess_status tess_raster_second(tess_memory *memory, const char *path, const tess_raster *raster,
                               const tess_raster_settings *settings, tess_resampling resampling,
                               tess_raster **out, tess_error *error) TESS_MUST_CHECK;

#endif
