/* fill_look.h: samples of a map that may be voids though nothing declares them. */
#ifndef TESS_JOB_FILL_LOOK_H
#define TESS_JOB_FILL_LOOK_H

#include "io/raster.h"
#include "job/common/zeros.h"

typedef struct tess_fill_look {
    tess_void_watch marks; /* those that became void */
    tess_zeros zeros;
} tess_fill_look;

/* Counts zeros in rows that were read, until it is clear that they are heights. `scratch`: a row. */
void tess_fill_count_zeros(tess_zeros *zeros, const tess_raster_info *info, const double *values,
                           int64_t rows, double *scratch);
/* Reads a whole second map or truth in its own grid, and makes its undeclared marks void. */
tess_status tess_fill_look_at(tess_raster *raster, tess_memory *memory, tess_stop *stop, tess_fill_look *look,
                              tess_error *error) TESS_MUST_CHECK;

#endif
