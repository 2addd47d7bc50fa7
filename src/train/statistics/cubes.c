#include "train/statistics/cubes.h"

tess_status tess_pixel_cubes_at(tess_pixel_cubes *cubes, int64_t image, tess_cube **cube, tess_error *error)
{
    const int64_t file = cubes->file[image];
    if (!cubes->open || cubes->open_file != file) {
        tess_cube_close(cubes->open);
        cubes->open = NULL;
        TESS_TRY(tess_cube_open(cubes->list.entries[file].path, &cubes->settings, &cubes->open, error));
        cubes->open_file = file;
    }
    *cube = cubes->open;
    return TESS_OK;
}

static tess_status read(void *user, int64_t image, int64_t first, int64_t rows, void *samples,
                        tess_error *error)
{
    tess_pixel_cubes *cubes = user;
    tess_cube *cube;
    TESS_TRY(tess_pixel_cubes_at(cubes, image, &cube, error));
    return tess_cube_read(cube, cubes->place[image], first, rows, samples, error);
}

static void list_images(tess_pixel_cubes *cubes)
{
    int64_t at = 0;
    for (int64_t f = 0; f < cubes->list.count; f++) {
        const tess_cube_info *info = &cubes->list.entries[f].info;
        for (int64_t i = 0; i < info->count; i++, at++) {
            cubes->image[at] = (tess_pixel_image){.height = info->height,
                                                  .width = info->width,
                                                  .dtype = info->dtype,
                                                  .has_nodata = info->has_nodata,
                                                  .nodata = info->nodata};
            cubes->file[at] = f;
            cubes->place[at] = i;
        }
    }
}

tess_status tess_pixel_cubes_open(const char *path, const tess_cube_settings *settings,
                                  tess_pixel_cubes *cubes, tess_error *error)
{
    *cubes = (tess_pixel_cubes){.settings = *settings};
    TESS_TRY(tess_cube_list_make(path, settings, &cubes->list, error));
    const size_t images = (size_t)cubes->list.images;
    cubes->image = tess_small_alloc(images, sizeof *cubes->image);
    cubes->file = tess_small_alloc(images, sizeof *cubes->file);
    cubes->place = tess_small_alloc(images, sizeof *cubes->place);
    if (!cubes->image || !cubes->file || !cubes->place)
        return tess_fail(error, TESS_NO_MEMORY, "no memory for the list of cubes");
    list_images(cubes);
    cubes->set = (tess_pixel_set){.images = cubes->list.images,
                                  .bands = cubes->list.bands,
                                  .image = cubes->image,
                                  .user = cubes,
                                  .read = read};
    return TESS_OK;
}

void tess_pixel_cubes_rest(tess_pixel_cubes *cubes)
{
    tess_cube_close(cubes->open);
    cubes->open = NULL;
}

void tess_pixel_cubes_close(tess_pixel_cubes *cubes)
{
    tess_cube_close(cubes->open);
    tess_small_free(cubes->image);
    tess_small_free(cubes->file);
    tess_small_free(cubes->place);
    tess_cube_list_free(&cubes->list);
    *cubes = (tess_pixel_cubes){0};
}

size_t tess_pixel_cubes_bytes(const tess_pixel_cubes *cubes)
{
    size_t most = 0;
    for (int64_t f = 0; f < cubes->list.count; f++)
        most = cubes->list.entries[f].info.held_bytes > most ? cubes->list.entries[f].info.held_bytes : most;
    return most;
}
