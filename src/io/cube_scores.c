/* cube_scores.c: one float a pixel, on the cube's grid. image.h's writer does the work; of the cube's metadata only the
 * georeference is true for scores. */
#include <math.h>

#include "io/cube_impl.h"

struct tess_cube_scores {
    tess_writer *writer;
};

static tess_image_info info_of(const tess_cube_info *cube, int64_t image)
{
    return (tess_image_info){.height = cube->height,
                             .width = cube->width,
                             .depth = image < 0 ? cube->count : 0,
                             .channels = 1,
                             .dtype = TESS_F32,
                             .full_scale = 1,
                             .axes = image < 0 ? TESS_AXES_DHW : TESS_AXES_HW,
                             .has_nodata = true,
                             .nodata = (double)NAN,
                             .only_place = true};
}

size_t tess_cube_scores_bytes(const tess_cube_info *info, int64_t image, const char *path)
{
    const tess_image_info scores = info_of(info, image);
    return tess_writer_held_bytes(path, &scores);
}

static tess_status open_writer(const tess_cube *cube, const tess_image_info *info, const char *path,
                               tess_writer **out, tess_error *error)
{
    tess_reader *like = NULL; /* of an array: GDAL is asked again where it lies */
    if (cube->info.georeferenced && !cube->reader)
        TESS_TRY(tess_reader_open_doubles(cube->memory, cube->path, TESS_AXES_AUTO, &like, error));
    const tess_status status =
        tess_writer_open(cube->memory, path, info, like ? like : cube->reader, out, error);
    tess_reader_close(like);
    return status;
}

tess_status tess_cube_scores_create(const tess_cube *cube, int64_t image, const char *path,
                                    tess_cube_scores **out, tess_error *error)
{
    const tess_image_info info = info_of(&cube->info, image);
    *out = NULL;
    if (image >= cube->info.count)
        return tess_fail(error, TESS_INTERNAL, "%s: image %lld of %lld", path, (long long)image,
                         (long long)cube->info.count);
    if (tess_image_same_target(path, cube->path))
        return tess_fail(error, TESS_BAD_OPTION, "%s: is the input or a file beside it; name another output",
                         path);
    tess_cube_scores *scores = tess_small_alloc(1, sizeof *scores);
    if (!scores)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
    tess_cube_lock();
    const tess_status status = open_writer(cube, &info, path, &scores->writer, error);
    tess_cube_unlock();
    if (status == TESS_OK)
        *out = scores;
    else
        tess_small_free(scores);
    return status;
}

tess_status tess_cube_scores_rows(tess_cube_scores *scores, int64_t rows, const float *values,
                                  tess_error *error)
{
    tess_cube_lock();
    const tess_status status = tess_writer_rows(scores->writer, rows, values, error);
    tess_cube_unlock();
    return status;
}

tess_status tess_cube_scores_commit(tess_cube_scores *scores, tess_error *error)
{
    tess_cube_lock();
    const tess_status status = tess_writer_commit(scores->writer, error);
    tess_cube_unlock();
    return status;
}

void tess_cube_scores_close(tess_cube_scores *scores)
{
    if (!scores)
        return;
    tess_cube_lock();
    tess_writer_close(scores->writer);
    tess_cube_unlock();
    tess_small_free(scores);
}
