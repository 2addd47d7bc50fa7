/* data_folder.h: crops of images with noise to be removed: the source of data that denoisers train on.
 *
 * Array 0: the clean crop, fp32 in [0, 1]. Array 1: the row of the op NOISE (1, deviation, item, step), which makes
 * the noisy crop on the device. Array 2, with `host_noise`: the noisy crop with the same numbers, for a device
 * without that op. The noise has the seed tess_data_seed(seed, TESS_DATA_NOISE). */
#ifndef TESS_TRAIN_DATA_FOLDER_H
#define TESS_TRAIN_DATA_FOLDER_H

#include "train/data.h"
#include "train/data_images.h"

enum { TESS_FOLDER_SCALES = 8, TESS_FOLDER_LEVELS = 32 };
enum { TESS_FOLDER_CLEAN, TESS_FOLDER_NOISE, TESS_FOLDER_NOISY }; /* the arrays */

typedef struct tess_folder_settings {
    tess_images_settings images;
    int64_t crop; /* side of a crop */
    /* Images are used at these sizes, each for its share of the crops. */
    int scales;
    double scale[TESS_FOLDER_SCALES], share[TESS_FOLDER_SCALES];
    bool upright; /* crops are neither mirrored nor turned */
    /* Noise levels on the scale [0, 1]: uniform in [low, high], or one of a list if there is one. */
    double low, high;
    int levels;
    double level[TESS_FOLDER_LEVELS];
    bool host_noise;
    bool level_channel; /* of the noisy crop: one channel more, which is the level */
} tess_folder_settings;

/* What was drawn for a sample. */
typedef struct tess_folder_choice {
    int64_t image;
    int scale;
    int64_t y, x; /* in the scaled image */
    int turn;     /* bits: 1 mirrors rows, 2 mirrors columns, 4 then exchanges rows and columns */
    double level;
} tess_folder_choice;

/* Crops of 128, scales 1, 0.9, 0.8, 0.7 with shares 0.55, 0.15, 0.15, 0.15, levels 0 to 0.2, three channels, and
 * 4 GiB for decoded images. The caller sets paths and memory. */
void tess_folder_defaults(tess_folder_settings *settings);
/* Refuses by name: images that are smaller than the crop at every scale. An image is not used at a scale that would
 * make it smaller than the crop. */
tess_status tess_folder_open(const tess_folder_settings *settings, tess_source **out,
                             tess_error *error) TESS_MUST_CHECK;
void tess_folder_choose(const tess_source *source, const tess_sample *sample, tess_folder_choice *choice);
const tess_images *tess_folder_images(const tess_source *source);

#endif
