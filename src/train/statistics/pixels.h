/* pixels.h: where phase 1 and scoring get their pixels: images of many bands, read by rows in any order. Tests give arrays,
 * the verb gives cubes of files. */
#ifndef TESS_TRAIN_STATISTICS_PIXELS_H
#define TESS_TRAIN_STATISTICS_PIXELS_H

#include "base/status.h"
#include "tensor/tensor.h"

typedef struct tess_pixel_image {
    int64_t height, width;
    tess_dtype dtype;
    bool has_nodata; /* a pixel with this sample in any band has no value */
    double nodata;
    bool masked; /* `missing` of the set must be asked for others without a value */
} tess_pixel_image;

/* Some pixels of the image may have no value. */
static inline bool tess_pixel_has_gaps(const tess_pixel_image *image)
{
    return image->has_nodata || image->masked;
}

typedef struct tess_pixel_set {
    int64_t images;
    int bands;
    const tess_pixel_image *image; /* one for each */
    void *user;
    /* Rows [first, first + rows) as (rows, width, bands), of the image's type. */
    tess_status (*read)(void *user, int64_t image, int64_t first, int64_t rows, void *samples,
                        tess_error *error);
    int readers; /* threads that may call `read` at the same time; 0: one */
    /* Where the rows from `first` on lie in the memory of the device that computes. Such rows are not read, if all images
     * are fp32 and have no nodata value and nothing is to be computed of them on the host. NULL: they do not. */
    const void *(*at)(void *user, int64_t image, int64_t first);
    /* For rows that were just read: writes 0 to `keep` for further pixels without a value. NULL: no image is masked. */
    tess_status (*missing)(void *user, int64_t image, int64_t first, int64_t rows, const void *samples,
                           uint8_t *keep, tess_error *error);
} tess_pixel_set;

/* Which of the pixels of rows that were just read have a value: 1 in `keep`, else 0. */
tess_status tess_pixel_set_keep(const tess_pixel_set *set, int64_t image, int64_t first, int64_t rows,
                                const void *samples, uint8_t *keep, tess_error *error) TESS_MUST_CHECK;

#endif
