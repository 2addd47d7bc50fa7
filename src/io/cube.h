/* cube.h: hyperspectral cubes: images of many bands, read in blocks of rows in any order.
 *
 * image.h streams the rows of a picture from the top. Statistics of cubes need several passes over files larger
 * than memory, blocks in any order, all bands of a pixel together, and the file's own samples, so that what is
 * sent to a device is what the file has. NPY arrays and ENVI rasters (BSQ, BIL, BIP) are dense arrays in a file
 * whose axes have some order: one reader (cube_array.c) serves them all. Every other format is read through
 * image.h's.
 *
 * Functions of one cube may be called from one thread at a time, those of different cubes from several; calls of
 * GDAL are serialised. */
#ifndef TESS_IO_CUBE_H
#define TESS_IO_CUBE_H

#include "base/mem.h"
#include "base/stop.h"
#include "io/raster_void.h"
#include "tensor/tensor.h"

typedef struct tess_cube tess_cube;               /* owned by the caller: tess_cube_close */
typedef struct tess_cube_mask tess_cube_mask;     /* owned by the caller: tess_cube_mask_close */
typedef struct tess_cube_scores tess_cube_scores; /* owned by the caller: tess_cube_scores_close */

typedef struct tess_cube_settings {
    const char *axes;    /* of an NPY array: "HWC", "BHWC", "CHW" and so on; NULL or "auto": HWC or BHWC */
    tess_memory *memory; /* counts what is held; must outlive the cube */
    tess_stop *stop;     /* ends a long read; NULL: none */
    bool find_marks;     /* tess_cube_list_make looks for undeclared marks of missing pixels (cube_marks.h) */
    bool nodata_given;   /* pixels with this sample in any band have no value, besides those of the file: */
    double nodata;
} tess_cube_settings;

typedef struct tess_cube_info {
    int64_t count; /* cubes in the file: B of BHWC, else 1 */
    int64_t height, width;
    int bands;
    tess_dtype dtype;          /* of the samples: U8, U16, I16, U32, I32, F32 or F64 */
    const double *wavelengths; /* in nm, one a band, owned by the cube or list; NULL: unknown */
    int bad_bands;             /* that an ENVI header marks as bad; they are read like others */
    double scale, offset;      /* sample * scale + offset is the quantity; never applied. 1 and 0: none */
    bool several_scales;       /* bands have different ones: these are the first band's */
    bool has_nodata;           /* a pixel with this sample has no value */
    double nodata;
    bool masked; /* the file also hides pixels in another way: tess_cube_missing must be asked */
    bool georeferenced;
    bool has_transform;
    double transform[6]; /* x = t[0] + column * t[1] + row * t[2], then y; a pixel begins at its number */
    char stored
        [5]; /* order of the axes in the file, the last varies fastest: "CHW" is BSQ; "": not an array */
    int64_t block_rows; /* reads of at least so many rows are efficient; fewer are possible */
    size_t held_bytes;  /* counted in `memory` from the first read on, the caller's samples not included */
} tess_cube_info;

/* Opens a file: NPY, ENVI (its data file, not its header), or any other raster that io/image.h reads. A header that
 * disagrees with the data is refused here, with both sizes. Messages contain the path. */
tess_status tess_cube_open(const char *path, const tess_cube_settings *settings, tess_cube **out,
                           tess_error *error) TESS_MUST_CHECK;
const tess_cube_info *tess_cube_describe(const tess_cube *cube);
const char *tess_cube_path(const tess_cube *cube);
/* Bytes of `rows` rows. */
size_t tess_cube_bytes(const tess_cube_info *info, int64_t rows);
/* Reads rows [first_row, first_row + rows) of one image of the file as (rows, width, bands), of the file's type in
 * this machine's byte order. */
tess_status tess_cube_read(tess_cube *cube, int64_t image, int64_t first_row, int64_t rows, void *samples,
                           tess_error *error) TESS_MUST_CHECK;
/* Accepts NULL. */
void tess_cube_close(tess_cube *cube);

/* Undeclared marks: those of raster_void.h, 1e20 and beyond, and 0. */
enum { TESS_CUBE_ABSURD = TESS_VOID_MARKS, TESS_CUBE_ZERO, TESS_CUBE_KINDS };
enum { TESS_CUBE_MANY_BANDS = 8 }; /* so many are never 0 together without a reason */
typedef struct tess_cube_marks {
    bool any, missing[TESS_CUBE_KINDS];     /* pixels of this kind have no value; any: of some kind */
    bool evident[TESS_CUBE_KINDS];          /* they are where a mark would be */
    bool sparse;                            /* zeros are frequent among samples */
    bool part;                              /* not all of the file was looked at */
    int64_t looked, count[TESS_CUBE_KINDS]; /* pixels that were looked at, and those of each kind */
    double value[TESS_CUBE_KINDS];
} tess_cube_marks;

/* For rows of an image that were just read as `samples`: writes 0 to `keep` for pixels without a value that a mask, the
 * given nodata value, or `marks` (NULL: none) say. The declared nodata value is the caller's matter. */
tess_status tess_cube_missing(tess_cube *cube, const tess_cube_marks *marks, int64_t first_row, int64_t rows,
                              const void *samples, uint8_t *keep, tess_error *error) TESS_MUST_CHECK;

typedef struct tess_cube_entry {
    char *path;
    tess_cube_info info; /* `wavelengths` is the list's */
    tess_cube_marks marks;
} tess_cube_entry;

typedef struct tess_cube_list {
    tess_cube_entry *entries;
    int64_t count;
    int64_t images, pixels; /* of all files together */
    int bands;              /* of every file */
    double *wavelengths;    /* of the first file that has them; NULL: unknown */
} tess_cube_list;

/* Lists one file, or the cubes of a folder, sorted by name. In a folder, NPY files, rasters, and files with an ENVI
 * header are cubes; names that end in `_mask` before the suffix, pictures (PNG, JPEG, …) and hidden files are left
 * out. Every file is opened once; all must have the same bands and wavelengths. The caller frees the list. */
tess_status tess_cube_list_make(const char *path, const tess_cube_settings *settings, tess_cube_list *list,
                                tess_error *error) TESS_MUST_CHECK;
void tess_cube_list_free(tess_cube_list *list);

/* The truth of a cube: NPY of any type of number or boolean, PNG, ENVI, GeoTIFF. A pixel that is not zero, in any
 * channel but alpha, is an anomaly. Sizes must agree: (height, width), with (count) before it for several images. */
tess_status tess_cube_mask_open(const char *path, const tess_cube_info *cube,
                                const tess_cube_settings *settings, tess_cube_mask **out,
                                tess_error *error) TESS_MUST_CHECK;
size_t tess_cube_mask_held_bytes(const tess_cube_mask *mask);
/* Writes rows * width bytes: 1 for an anomaly, else 0. Any order; files that can only be decoded from the top are
 * opened again for a step back. */
tess_status tess_cube_mask_read(tess_cube_mask *mask, int64_t image, int64_t first_row, int64_t rows,
                                uint8_t *marks, tess_error *error) TESS_MUST_CHECK;
void tess_cube_mask_close(tess_cube_mask *mask);
/* The mask that belongs to a cube by name: NAME_mask with the cube's suffix, or .npy, .png, .img, .tif. NULL: there is
 * none, or no memory. The caller frees it. */
char *tess_cube_mask_beside(const char *path);

/* Scores, one float32 a pixel, NaN where there is none: a GeoTIFF with the cube's georeference, or NPY, by suffix.
 * `image` is the one that they belong to; -1: all of them, as (count, height, width), to NPY only. The file gets its
 * name at commit. */
tess_status tess_cube_scores_create(const tess_cube *cube, int64_t image, const char *path,
                                    tess_cube_scores **out, tess_error *error) TESS_MUST_CHECK;
/* What such a writer holds, without opening it. */
size_t tess_cube_scores_bytes(const tess_cube_info *info, int64_t image, const char *path);
/* Rows in order, from the top. */
tess_status tess_cube_scores_rows(tess_cube_scores *scores, int64_t rows, const float *values,
                                  tess_error *error) TESS_MUST_CHECK;
tess_status tess_cube_scores_commit(tess_cube_scores *scores, tess_error *error) TESS_MUST_CHECK;
/* Without commit, what was written is removed. Accepts NULL. */
void tess_cube_scores_close(tess_cube_scores *scores);

#endif
