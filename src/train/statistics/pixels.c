#include "train/statistics/pixels.h"

#include <string.h>

#include "tensor/samples.h"

enum { LINE = 512 }; /* values that are looked at together */

/* keep[p] = 0 where any band has the sample that means no value. */
static void find_nodata(const tess_pixel_image *image, int bands, int64_t pixels, const char *samples,
                        uint8_t *keep)
{
    const size_t size = tess_dtype_size(image->dtype);
    const float nodata = (float)image->nodata;
    float line[LINE];
    for (int64_t p = 0; p < pixels; p++) {
        keep[p] = 1;
        for (int c = 0; c < bands; c += LINE) {
            const int some = bands - c < LINE ? bands - c : LINE;
            tess_samples_to_float(image->dtype, 1, samples + ((size_t)p * (size_t)bands + (size_t)c) * size,
                                  some, line);
            for (int i = 0; i < some; i++)
                keep[p] &= !(line[i] == nodata);
        }
    }
}

tess_status tess_pixel_set_keep(const tess_pixel_set *set, int64_t image, int64_t first, int64_t rows,
                                const void *samples, uint8_t *keep, tess_error *error)
{
    const tess_pixel_image *of = &set->image[image];
    memset(keep, 1, (size_t)(rows * of->width));
    if (of->has_nodata)
        find_nodata(of, set->bands, rows * of->width, samples, keep);
    return of->masked ? set->missing(set->user, image, first, rows, samples, keep, error) : TESS_OK;
}
