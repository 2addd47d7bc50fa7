/* npy.h: the header of an .npy file as data (private to this room): npy_header.c parses it, npy.c moves the
 * samples. */
#ifndef TESS_IO_NPY_H
#define TESS_IO_NPY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

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

#endif
