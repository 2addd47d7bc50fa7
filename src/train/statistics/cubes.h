/* cubes.h: a list of cube files as one set of images. Every thread that reads has a file of its own open; several
 * read only if their files hold no memory. */
#ifndef TESS_TRAIN_STATISTICS_CUBES_H
#define TESS_TRAIN_STATISTICS_CUBES_H

#include <pthread.h>

#include "io/cube.h"
#include "train/statistics/blocks.h"

typedef struct tess_pixel_file {
    tess_cube *cube; /* NULL: none */
    int64_t file;
    bool busy;
} tess_pixel_file;

typedef struct tess_pixel_cubes {
    tess_cube_settings settings;
    tess_cube_list list;
    tess_pixel_image *image;
    int64_t *file, *place;                       /* of each image: its file, and its number in the file */
    tess_pixel_file main;                        /* of tess_pixel_cubes_at */
    tess_pixel_file readers[TESS_PIXEL_READERS]; /* of threads that read */
    pthread_mutex_t mutex;                       /* of `readers` */
    bool ready;                                  /* the mutex exists */
    tess_pixel_set set;
} tess_pixel_cubes;

tess_status tess_pixel_cubes_open(const char *path, const tess_cube_settings *settings,
                                  tess_pixel_cubes *cubes, tess_error *error) TESS_MUST_CHECK;
void tess_pixel_cubes_close(tess_pixel_cubes *cubes);
/* The cube of an image, open until the next call; from one thread. */
tess_status tess_pixel_cubes_at(tess_pixel_cubes *cubes, int64_t image, tess_cube **cube,
                                tess_error *error) TESS_MUST_CHECK;
/* Closes the open files; they are opened again when they are read. */
void tess_pixel_cubes_rest(tess_pixel_cubes *cubes);
/* The most that an open file holds. */
size_t tess_pixel_cubes_bytes(const tess_pixel_cubes *cubes);

#endif
