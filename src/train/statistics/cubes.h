/* cubes.h: a list of cube files as one set of images. One file is open at a time. */
#ifndef TESS_TRAIN_STATISTICS_CUBES_H
#define TESS_TRAIN_STATISTICS_CUBES_H

#include "io/cube.h"
#include "train/statistics/pixels.h"

typedef struct tess_pixel_cubes {
    tess_cube_settings settings;
    tess_cube_list list;
    tess_pixel_image *image;
    int64_t *file, *place; /* of each image: its file, and its number in the file */
    tess_cube *open;
    int64_t open_file;
    tess_pixel_set set;
} tess_pixel_cubes;

tess_status tess_pixel_cubes_open(const char *path, const tess_cube_settings *settings,
                                  tess_pixel_cubes *cubes, tess_error *error) TESS_MUST_CHECK;
void tess_pixel_cubes_close(tess_pixel_cubes *cubes);
/* The cube of an image, open. */
tess_status tess_pixel_cubes_at(tess_pixel_cubes *cubes, int64_t image, tess_cube **cube,
                                tess_error *error) TESS_MUST_CHECK;
/* Closes the open file; it is opened again when it is read. */
void tess_pixel_cubes_rest(tess_pixel_cubes *cubes);
/* The most that an open file holds. */
size_t tess_pixel_cubes_bytes(const tess_pixel_cubes *cubes);

#endif
