/* data_folder_impl.h: the struct of the source of crops, for data_folder.c and data_crop.c. */
#ifndef TESS_TRAIN_DATA_FOLDER_IMPL_H
#define TESS_TRAIN_DATA_FOLDER_IMPL_H

#include <math.h>

#include "train/data_folder.h"

typedef struct tess_folder {
    tess_source source; /* first */
    tess_folder_settings settings;
    tess_images *images;
    int64_t reach; /* most rows or columns of an image that a crop depends on */
    int workers;
    tess_block scratch; /* for each worker: of the images, of the resize, a crop */
} tess_folder;

static inline int64_t tess_folder_scaled(const tess_folder *f, int64_t size, int scale)
{
    return llrint((double)size * f->settings.scale[scale]);
}

static inline bool tess_folder_usable(const tess_folder *f, const tess_images_file *image, int scale)
{
    return tess_folder_scaled(f, image->height, scale) >= f->settings.crop &&
           tess_folder_scaled(f, image->width, scale) >= f->settings.crop;
}

/* A worker's scratch: for the images, then for the resize, then one crop. */
size_t tess_folder_images_room(const tess_folder *f);
size_t tess_folder_resize_room(const tess_folder *f);
size_t tess_folder_worker_room(const tess_folder *f);

tess_status tess_folder_draw(tess_source *source, const tess_sample *sample,
                             void *const arrays[TESS_DATA_ARRAYS], tess_error *error);

#endif
