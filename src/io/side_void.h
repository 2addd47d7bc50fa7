/* side_void.h: void samples of an image that is read without GDAL, as files beside it mark them (private to this
 * room). */
#ifndef TESS_IO_SIDE_VOID_H
#define TESS_IO_SIDE_VOID_H

#include <limits.h>

#include "io/nodata.h"

typedef struct tess_side_void {
    tess_memory *memory;
    tess_image_info info;
    tess_nodata *nodata; /* for each channel; NULL: none */
    tess_reader *mask;   /* of NAME.SUFFIX.msk; NULL: there is none */
    char *mask_path;
    tess_block row; /* one row of the mask */
    int64_t next;   /* row of the mask */
} tess_side_void;

/* Writes the name of the mask file beside `path`; returns false when there is none. */
bool tess_side_mask(const char *path, char name[PATH_MAX]);
/* Reads nodata values, scale and offset from NAME.SUFFIX.aux.xml and opens NAME.SUFFIX.msk. Sets the members of *info
 * that describe them, and adds to held_bytes. Call tess_side_void_close in any case. */
tess_status tess_side_void_open(tess_side_void *v, tess_memory *memory, const char *path,
                                tess_image_info *info, tess_error *error) TESS_MUST_CHECK;
/* For rows [first, first + count), whose samples are `rows`. Quick when rows are asked for in order. */
tess_status tess_side_void_rows(tess_side_void *v, int64_t first, int64_t count, const void *rows,
                                unsigned char *valid, tess_error *error) TESS_MUST_CHECK;
void tess_side_void_close(tess_side_void *v);

#endif
