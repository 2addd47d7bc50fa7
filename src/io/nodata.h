/* nodata.h: nodata values, which mark samples as void (private to this room). */
#ifndef TESS_IO_NODATA_H
#define TESS_IO_NODATA_H

#include "io/image.h"

/* The value of one band, if it has one. */
typedef struct tess_nodata {
    bool any;
    double value;
} tess_nodata;

/* Drops values that no sample of the image can equal, and describes the others in *info: has_nodata, nodata and
 * several_nodata. `values` has one entry for each channel. Returns false when none is left. */
bool tess_nodata_describe(tess_nodata *values, tess_image_info *info);
/* Writes 0 to `valid` for each of the pixels' samples that equals the value of its channel. */
void tess_nodata_mark(const tess_nodata *values, const tess_image_info *info, const void *samples,
                      int64_t pixels, unsigned char *valid);
/* True when a float32 sample, perhaps of a file of doubles, is this nodata value. */
bool tess_nodata_same_float(float sample, double nodata);

#endif
