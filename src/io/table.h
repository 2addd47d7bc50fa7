/* table.h: small arrays of numbers that are not images: (rows, columns) from an NPY file, in double precision. */
#ifndef TESS_IO_TABLE_H
#define TESS_IO_TABLE_H

#include "base/status.h"

typedef struct tess_table {
    int64_t rows, columns;
    double *values; /* row by row; owned by the caller: tess_small_free */
    bool integers;  /* the file holds integers */
} tess_table;

/* Reads floats or integers, at most `most` numbers, so that a wrong file is not read in full. */
tess_status tess_table_read(const char *path, int64_t most, tess_table *out,
                            tess_error *error) TESS_MUST_CHECK;

#endif
