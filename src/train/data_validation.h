/* data_validation.h: a fixed set of images with fixed noise, whose PSNR shows whether training helps.
 *
 * The noise of a pixel is that of `denoise` with `add_noise` and the same seed: drawn by (seed, place of the image in
 * the list, place in the image), the same for every level, neither clipped nor rounded. So the figures are those of
 * that job. The caller runs the network: next() gives arrays, add() takes the result. Each image is decoded once for all
 * levels. */
#ifndef TESS_TRAIN_DATA_VALIDATION_H
#define TESS_TRAIN_DATA_VALIDATION_H

#include "base/pool.h"
#include "train/data_images.h"

enum { TESS_VALIDATION_LEVELS = 8 };

typedef struct tess_validation_settings {
    tess_images_settings images; /* `budget` keeps decoded images from one validation to the next */
    int levels;
    double level[TESS_VALIDATION_LEVELS]; /* on the scale [0, 1] */
    uint64_t seed;
    int64_t grid; /* the arrays are multiples of this, which the network needs; 0 stands for 1 */
    bool cropped; /* images are cropped to such a multiple; else their last rows and columns are repeated */
    bool level_channel; /* noisy images have one channel more, which is the level */
    tess_pool *pool;    /* makes noise; may be NULL */
} tess_validation_settings;

typedef struct tess_validation_item {
    const char *path;
    int64_t image;
    int level;                    /* its index */
    double deviation;             /* its value */
    int64_t height, width;        /* of the arrays */
    int64_t kept_rows, kept_cols; /* of them, from the first on, are compared */
    int channels, noisy_channels;
    const float *clean, *noisy; /* dense; valid until the next call */
} tess_validation_item;

typedef struct tess_validation tess_validation; /* owned by the caller: tess_validation_close */

/* Lists the files and reads their headers. */
tess_status tess_validation_open(const tess_validation_settings *settings, tess_validation **out,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_validation_close(tess_validation *validation);
const tess_images *tess_validation_images(const tess_validation *validation);
/* Host memory that `begin` allocates and that decoding holds. */
size_t tess_validation_bytes(const tess_validation *validation);
/* The sizes of the largest arrays, in pixels: the network must be able to run each image. */
void tess_validation_largest(const tess_validation *validation, int64_t *height, int64_t *width);
int64_t tess_validation_count(const tess_validation *validation); /* images times levels */

/* Starts a validation: next() begins with the first image, and all sums are zero. */
tess_status tess_validation_begin(tess_validation *validation, tess_error *error) TESS_MUST_CHECK;
/* Gives the next image and level; *more is false after the last. */
tess_status tess_validation_next(tess_validation *validation, tess_stop *stop, tess_validation_item *item,
                                 bool *more, tess_error *error) TESS_MUST_CHECK;
/* Adds the network's result for the last item: height x width x channels values. Returns its PSNR. */
double tess_validation_add(tess_validation *validation, const float *result);
/* Mean PSNR over the images added at this level; level -1: over all levels. NaN if there are none. */
double tess_validation_psnr(const tess_validation *validation, int level);

#endif
