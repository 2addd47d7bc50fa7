/* npy.h: .npy files (private to this room): npy_header.c parses the header, npy.c moves the samples of images,
 * npy_table.c those of tables. */
#ifndef TESS_IO_NPY_H
#define TESS_IO_NPY_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "io/image.h"

typedef struct tess_npy_header {
    char kind;    /* 'u', 'i', 'f', … as in the descr string */
    int size;     /* bytes a sample */
    bool swapped; /* the file's byte order is not this machine's */
    bool fortran;
    int rank; /* 0 to 8 */
    int64_t shape[8];
} tess_npy_header;

/* `text` is the Python dictionary after the magic, version and length. Any key order, any spacing; nothing is
 * trusted. */
tess_status tess_npy_parse(const char *text, size_t bytes, tess_npy_header *out,
                           tess_error *error) TESS_MUST_CHECK;

typedef struct tess_npy_file {
    FILE *file;
    tess_npy_header header;
    int64_t height, row_samples;
} tess_npy_file;

/* For reading, from the first sample on; `*state` is a tess_npy_file. */
tess_status tess_npy_open(const char *path, tess_image_info *info, void **state,
                          tess_error *error) TESS_MUST_CHECK;
/* The next ones, in this machine's byte order. False: the file ended, or failed. */
bool tess_npy_samples(tess_npy_file *npy, void *to, int64_t samples);
void tess_npy_close(void *state);

#endif
