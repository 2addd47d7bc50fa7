/* cube_impl.h: an open cube (private to cube*.c and gdal_cube.c). */
#ifndef TESS_IO_CUBE_IMPL_H
#define TESS_IO_CUBE_IMPL_H

#include "io/cube.h"
#include "io/envi_array.h"
#include "io/format.h"

/* A dense array of samples in a file. */
typedef struct tess_cube_array {
    int file;
    int64_t offset; /* of the first sample, in bytes */
    int sample_bytes;
    bool swapped;                                 /* the byte order is not this machine's */
    int64_t piece_rows;                           /* read at once, from all bands */
    tess_block piece;                             /* as in the file; unused for HWC */
    int64_t piece_image, piece_first, piece_held; /* which rows it holds */
} tess_cube_array;

struct tess_cube {
    tess_memory *memory;
    tess_stop *stop;
    char *path;
    tess_cube_info info;
    double *wavelengths;
    tess_cube_array array;
    tess_reader *reader; /* NULL: it is an array */
    tess_block row;      /* of a reader in order: for rows that are skipped */
    tess_block valid;    /* of a row of samples that a mask hides */
    bool nodata_given;
    double nodata;
    int colours; /* bands before alpha */
    bool mask;   /* opened as one */
    bool real;   /* floats: the sign of a zero does not count */
};

/* For masks, `mask` allows one band, alpha, and samples of more types. */
tess_status tess_cube_open_as(const char *path, const tess_cube_settings *settings, bool mask,
                              tess_cube **out, tess_error *error) TESS_MUST_CHECK;
/* Fills info and array from an NPY file. */
tess_status tess_cube_npy(tess_cube *cube, const char *axes, tess_error *error) TESS_MUST_CHECK;
/* With info's sizes, type and `stored` set: fills the rest of the array, opens the file, and sets block_rows and
 * held_bytes. Fails when the file has other bytes than `offset` and the samples. */
tess_status tess_cube_array_open(tess_cube *cube, int64_t offset, bool swapped,
                                 tess_error *error) TESS_MUST_CHECK;
tess_status tess_cube_array_read(tess_cube *cube, int64_t image, int64_t first, int64_t rows, char *samples,
                                 tess_error *error) TESS_MUST_CHECK;

/* All work of image.h's readers and writers on cubes is done while this lock is held: a read of one dataset of GDAL
 * may write the changed blocks of another. */
void tess_cube_lock(void);
void tess_cube_unlock(void);

/* What GDAL knows of an open reader, besides tess_image_info. */
typedef struct tess_cube_facts {
    double *wavelengths; /* owned by the caller; NULL: unknown */
    bool several_scales;
    int bad_bands;
    bool masked; /* by a mask band */
    int64_t block_rows;
    tess_envi_array array;
} tess_cube_facts;
tess_status tess_gdal_cube_facts(void *reader_state, tess_cube_facts *facts,
                                 tess_error *error) TESS_MUST_CHECK;
/* GDAL refuses an ENVI raster whose data is much shorter than its header says, without a word on the sizes. Fails with
 * both when that is so. */
tess_status tess_gdal_cube_explain(const char *path, tess_error *error) TESS_MUST_CHECK;

/* Bytes of the path without its suffix. */
size_t tess_cube_stem(const char *path);

/* Nanometres for a wavelength of 1 in this unit ("Micrometers", "nm", …); 0: unknown, or no length. */
double tess_wavelength_unit(const char *unit);
/* Converts to nm. Without a unit (NULL or ""), values below 100 are micrometres. False: they are no wavelengths. */
bool tess_wavelengths_to_nm(double *values, int count, const char *unit);

#endif
