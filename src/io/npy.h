/* npy.h: .npy files (private to this room). npy_header.c reads the header, npy_axes.c assigns its axes, npy.c
 * reads and writes the samples of images, npy_planes.c those in planes, npy_table.c those of tables, cube_npy.c
 * those of cubes. */
#ifndef TESS_IO_NPY_H
#define TESS_IO_NPY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "io/image.h"

typedef struct tess_npy_header {
    char kind;    /* 'u', 'i', 'f', … as in the descr string */
    int size;     /* bytes per sample */
    bool swapped; /* the byte order is not this machine's */
    bool fortran;
    int rank; /* 0 to 8 */
    int64_t shape[8];
} tess_npy_header;

/* Parses `text`, the Python dictionary after the magic, version and length. Accepts any key order and spacing;
 * trusts nothing. */
tess_status tess_npy_parse(const char *text, size_t bytes, tess_npy_header *out,
                           tess_error *error) TESS_MUST_CHECK;

/* Reads magic, version, length and dictionary. `*offset` is where the samples begin. */
tess_status tess_npy_read_header(FILE *file, tess_npy_header *out, int64_t *offset,
                                 tess_error *error) TESS_MUST_CHECK;
/* Fails when a side is impossible, or when the file has not exactly the bytes that the shape needs. */
tess_status tess_npy_check_size(FILE *file, const tess_npy_header *header, int64_t offset,
                                tess_error *error) TESS_MUST_CHECK;
/* Arrays that are stored column by column are not read. */
tess_status tess_npy_fail_fortran(tess_error *error);

/* Sets depth, height, width, channels and axes of *info, whose `axes` is the requested order. Every size is at
 * least 1 and fits an int. */
tess_status tess_npy_axes(const tess_npy_header *header, tess_image_info *info,
                          tess_error *error) TESS_MUST_CHECK;
/* Writes the type of the samples as NumPy names it: "int64", "complex128". */
void tess_npy_type(const tess_npy_header *header, char *text, size_t bytes);
/* Writes the shape as Python does, "(480, 640, 3)". */
void tess_npy_shape(const tess_npy_header *header, char *text, size_t bytes);

typedef struct tess_npy_file {
    tess_memory *memory;
    FILE *file;
    tess_npy_header header;
    int64_t height, row_samples; /* total rows, each of width * channels samples */
    int64_t width;               /* this and the following: for (C,H,W) only */
    int channels;
    int64_t offset;   /* position of the first sample in the file */
    int64_t next;     /* the row at which the file is positioned, unless planar */
    tess_block plane; /* rows of one plane, as in the file */
    bool planar;
    bool as_float; /* half and double precision are converted to float32 */
} tess_npy_file;

/* Rows of a (C,H,W) file, interleaved. Memory held while they are moved: tess_npy_plane_bytes(width, bytes per
 * sample). */
size_t tess_npy_plane_bytes(int64_t width, int sample_bytes);
tess_status tess_npy_read_planes(tess_npy_file *npy, int64_t first, int64_t count, void *rows,
                                 tess_error *error) TESS_MUST_CHECK;
tess_status tess_npy_write_planes(tess_npy_file *npy, int64_t first, int64_t count, const void *rows,
                                  tess_error *error) TESS_MUST_CHECK;

/* Opens for reading, at the first sample; `*state` is a tess_npy_file. */
tess_status tess_npy_open(tess_memory *memory, const char *path, tess_image_info *info, void **state,
                          tess_error *error) TESS_MUST_CHECK;
/* Converts in place from the file's byte order to this machine's. */
void tess_npy_swap(const tess_npy_header *header, void *samples, int64_t count);
/* Reads the next samples, in this machine's byte order. Returns false at the end of the file or on an error. */
bool tess_npy_samples(tess_npy_file *npy, void *to, int64_t samples);
void tess_npy_close(void *state);

#endif
