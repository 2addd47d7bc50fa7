/* values.h: the values of an image file as floats, row by row.
 *
 * Samples that the file marks as missing (nodata value, mask) are read as NaN, so that whoever refuses NaN refuses them
 * too. Doubles and integers of 32 bits are converted here, where it is seen what 32-bit floats lose of them. */
#ifndef TESS_JOB_RECONSTRUCT_PROBLEM_VALUES_H
#define TESS_JOB_RECONSTRUCT_PROBLEM_VALUES_H

#include "base/stop.h"
#include "io/image.h"

/* What 32-bit floats keep of the values of a file, or of several. Initialize with {0}. */
typedef struct tess_kept {
    bool any;
    double low, high, lost; /* lost: the largest difference between a value and its float */
} tess_kept;

/* Fails if the floats say too little about the values. */
tess_status tess_kept_check(const tess_kept *kept, const char *path, tess_error *error) TESS_MUST_CHECK;

/* Initialize with {0}; close it also if opening fails. */
typedef struct tess_values {
    tess_memory *memory;
    const char *path; /* not owned */
    tess_reader *reader;
    tess_image_info info; /* of the file; doubles are F32 here */
    tess_dtype dtype;     /* of the samples as they are read */
    void *row;      /* samples, then, if the file marks missing ones, a byte for each; NULL: not needed yet */
    tess_block own; /* the row, if none was lent */
    const float *marks; /* values that are read as NaN; not owned */
    int mark_count;
    tess_stop *stop; /* polled at each row; not owned; NULL: nothing stops it */
} tess_values;

/* Opens a file, or with `page` not 0 a page of a TIFF file, which ignores `axes`. `path` must outlive it. */
tess_status tess_values_open(tess_memory *memory, const char *path, tess_axes axes, uint64_t page,
                             tess_values *values, tess_error *error) TESS_MUST_CHECK;
/* Lends memory of the caller for a row of floats. The samples of most types fit, and need no block then. */
void tess_values_lend(tess_values *values, float *row);
/* Bytes that are held while rows are read, with a row of floats that is lent or without. */
size_t tess_values_held(const tess_values *values, bool lent);
/* Reads the next row of the file. */
tess_status tess_values_next(tess_values *values, tess_error *error) TESS_MUST_CHECK;
/* Converts samples [first, first + count) of this row; integers are divided by `full_scale`. */
tess_status tess_values_take(const tess_values *values, double full_scale, int64_t first, int64_t count,
                             float *to, tess_kept *kept, tess_error *error) TESS_MUST_CHECK;
void tess_values_close(tess_values *values);

#endif
