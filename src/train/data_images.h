/* data_images.h: the image files of a data set: found in folders, checked by their headers, decoded when they are
 * first used.
 *
 * Decoded images are kept as the file's 8- or 16-bit samples (3 or 6 bytes a colour pixel, where floats take 12), as
 * many as a budget allows. Those that do not fit are decoded again for every use: with random access, keeping a
 * fixed part of the images hits as often as any replacement of one by another. */
#ifndef TESS_TRAIN_DATA_IMAGES_H
#define TESS_TRAIN_DATA_IMAGES_H

#include "base/mem.h"
#include "base/stop.h"
#include "tensor/tensor.h"

typedef struct tess_images_settings {
    const char *const *paths; /* folders and files; the caller's until open returns */
    int path_count;
    const char *const *exclude; /* file names, with or without folders in front */
    int exclude_count;
    bool recursive; /* also the folders in folders */
    int channels;   /* of the network; 1 takes the luma of colour images */
    bool heights;   /* files are elevation maps (data_heights.c), and channels 1 */
    size_t budget;  /* most bytes for decoded images that are kept */
    tess_memory *memory;
} tess_images_settings;

typedef enum tess_image_state { TESS_IMAGE_EMPTY, TESS_IMAGE_LOADING, TESS_IMAGE_READY } tess_image_state;

typedef struct tess_images_file {
    char *path;
    int64_t height, width;
    int channels; /* of the file */
    tess_dtype dtype;
    size_t held;  /* by its reader */
    uint32_t sum; /* of its name in its folder, its sizes and its bytes: see tess_images_sums */
    bool kept;
    size_t at; /* in the memory for kept images */
    tess_image_state state;
} tess_images_file;

typedef struct tess_images tess_images; /* owned by the caller: tess_images_close */

/* A rectangle of an image. */
typedef struct tess_rect {
    int64_t y, x, height, width;
} tess_rect;

/* Samples of a rectangle: row r begins at data + r * stride samples, with the channels of the network interleaved. */
typedef struct tess_view {
    const void *data;
    int64_t stride;
    tess_dtype dtype;
} tess_view;

/* Lists the files, sorted within each folder, and reads their headers. Refuses by name: what does not exist, folders
 * without images, names to exclude that are not there, and images of another kind than the network's. */
tess_status tess_images_open(const tess_images_settings *settings, tess_images **out,
                             tess_error *error) TESS_MUST_CHECK;
void tess_images_close(tess_images *images);
int64_t tess_images_count(const tess_images *images);
/* Valid until close; `state` may change at any time. */
const tess_images_file *tess_images_at(const tess_images *images, int64_t index);

/* Links to folders in the folders: they are not followed. */
int64_t tess_images_links(const tess_images *images);

/* data_sums.c: a text that tells whether another list has the same files, by names and sizes, for checkpoints: eight hexadecimal
 * digits a file. The caller frees it; NULL: no memory. */
char *tess_images_sums(const tess_images *images);
/* Refuses a list that is not the one of `before`, with the name of a file. */
tess_status tess_images_unchanged(const tess_images *images, const char *before,
                                  tess_error *error) TESS_MUST_CHECK;
/* Sets the sum of a file that was found in one of the paths. */
void tess_images_set_sum(const tess_images_settings *settings, tess_images_file *file);

/* Bytes of the images that are kept, and how many those are. */
size_t tess_images_kept_bytes(const tess_images *images, int64_t *count);
/* Bytes of one thread's scratch for rectangles of at most this size, and what its reader holds besides. */
size_t tess_images_scratch_bytes(const tess_images *images, int64_t height, int64_t width);
size_t tess_images_reader_bytes(const tess_images *images);

/* Allocates the memory for kept images; a second call does nothing. */
tess_status tess_images_begin(tess_images *images, tess_error *error) TESS_MUST_CHECK;
/* Any thread: finds the samples of a rectangle, decoding the file if necessary. The view is valid until the same
 * scratch is used again. */
tess_status tess_images_view(tess_images *images, int64_t index, tess_rect rect, void *scratch,
                             tess_stop *stop, tess_view *view, tess_error *error) TESS_MUST_CHECK;

/* data_list.c: adds the image files of a path to a growing list. */
typedef struct tess_file_list {
    char **paths;
    int64_t count, room;
    int64_t links; /* to folders, which were not followed */
} tess_file_list;
tess_status tess_file_list_make(const tess_images_settings *settings, tess_file_list *list,
                                tess_error *error) TESS_MUST_CHECK;
void tess_file_list_free(tess_file_list *list);

/* data_heights.c: fills in all of a map's facts but the path. Refuses by name what is no raster of one band. */
tess_status tess_heights_describe(tess_memory *memory, tess_images_file *file,
                                  tess_error *error) TESS_MUST_CHECK;
/* Reads a rectangle. `strip`: room for `rows` rows of the file as doubles, which are read between two checks of `stop`. */
tess_status tess_heights_read(tess_memory *memory, const tess_images_file *file, tess_rect rect, int64_t rows,
                              double *strip, float *to, tess_stop *stop, tess_error *error) TESS_MUST_CHECK;

#endif
