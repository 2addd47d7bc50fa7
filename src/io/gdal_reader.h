/* gdal_reader.h: an image that GDAL reads (private to this room). */
#ifndef TESS_IO_GDAL_READER_H
#define TESS_IO_GDAL_READER_H

#include "io/gdal_api.h"
#include "io/gdal_void.h"

typedef struct tess_gdal_reader {
    tess_memory *memory;
    GDALDatasetH dataset;
    int64_t height, width;
    int channels;
    GDALDataType type; /* sample type of the caller */
    size_t row_bytes, sample_bytes;
    int64_t block_rows;
    tess_block strip; /* one row of blocks; unused when blocks are one row high */
    int64_t strip_first, strip_rows;
    int64_t cache, counted;
    bool started;
    tess_gdal_void empty; /* samples without a value */
    bool doubles;         /* they are read as float32: see gdal_range.h */
} tess_gdal_reader;

/* As `rows` of tess_read_format; `state` is a tess_gdal_reader. */
tess_status tess_gdal_read_rows(void *state, int64_t first, int64_t count, void *rows,
                                tess_error *error) TESS_MUST_CHECK;

#endif
