#include "train/statistics/cubes.h"

#include "train/statistics/digits.h"

static tess_status open_at(tess_pixel_cubes *cubes, tess_pixel_file *at, int64_t file, tess_error *error)
{
    if (at->cube && at->file == file)
        return TESS_OK;
    tess_cube_close(at->cube);
    at->cube = NULL;
    TESS_TRY(tess_cube_open(cubes->list.entries[file].path, &cubes->settings, &at->cube, error));
    at->file = file;
    return TESS_OK;
}

tess_status tess_pixel_cubes_at(tess_pixel_cubes *cubes, int64_t image, tess_cube **cube, tess_error *error)
{
    TESS_TRY(open_at(cubes, &cubes->main, cubes->file[image], error));
    *cube = cubes->main.cube;
    return TESS_OK;
}

/* A file that nobody uses: this one if it is open. There are as many as threads that read. */
static tess_pixel_file *take_file(tess_pixel_cubes *cubes, int64_t file)
{
    tess_pixel_file *found = NULL;
    pthread_mutex_lock(&cubes->mutex);
    for (int i = 0; i < cubes->set.readers; i++) {
        tess_pixel_file *at = &cubes->readers[i];
        if (!at->busy && (!found || (at->cube && at->file == file)))
            found = at;
    }
    found->busy = true;
    pthread_mutex_unlock(&cubes->mutex);
    return found;
}

static void give_file(tess_pixel_cubes *cubes, tess_pixel_file *file)
{
    pthread_mutex_lock(&cubes->mutex);
    file->busy = false;
    pthread_mutex_unlock(&cubes->mutex);
}

static tess_status check_digits(const tess_pixel_cubes *cubes, int64_t image, int64_t rows,
                                const void *samples, const uint8_t *keep, tess_error *error)
{
    const tess_pixel_image *of = &cubes->image[image];
    const tess_status status =
        tess_pixel_digits(of, cubes->set.bands, samples, rows * of->width, keep, error);
    return status == TESS_OK ? TESS_OK
                             : tess_fail_prefix(error, status, cubes->list.entries[cubes->file[image]].path);
}

static tess_status read(void *user, int64_t image, int64_t first, int64_t rows, void *samples,
                        tess_error *error)
{
    tess_pixel_cubes *cubes = user;
    tess_pixel_file *at = take_file(cubes, cubes->file[image]);
    tess_status status = open_at(cubes, at, cubes->file[image], error);
    if (status == TESS_OK)
        status = tess_cube_read(at->cube, cubes->place[image], first, rows, samples, error);
    give_file(cubes, at);
    return status == TESS_OK && !cubes->image[image].masked
               ? check_digits(cubes, image, rows, samples, NULL, error)
               : status;
}

static tess_status missing(void *user, int64_t image, int64_t first, int64_t rows, const void *samples,
                           uint8_t *keep, tess_error *error)
{
    tess_pixel_cubes *cubes = user;
    const int64_t file = cubes->file[image];
    tess_pixel_file *at = take_file(cubes, file);
    tess_status status = open_at(cubes, at, file, error);
    if (status == TESS_OK)
        status =
            tess_cube_missing(at->cube, &cubes->list.entries[file].marks, first, rows, samples, keep, error);
    give_file(cubes, at);
    return status == TESS_OK ? check_digits(cubes, image, rows, samples, keep, error) : status;
}

/* Arrays in the order of pixels are read without memory of their own, by any number of threads. */
static int readers_of(const tess_cube_list *list)
{
    for (int64_t f = 0; f < list->count; f++)
        if (!list->entries[f].info.stored[0] || list->entries[f].info.held_bytes > 0)
            return 1;
    return TESS_PIXEL_READERS;
}

static void list_images(tess_pixel_cubes *cubes)
{
    int64_t at = 0;
    for (int64_t f = 0; f < cubes->list.count; f++) {
        const tess_cube_info *info = &cubes->list.entries[f].info;
        const bool masked = info->masked || cubes->settings.nodata_given || cubes->list.entries[f].marks.any;
        for (int64_t i = 0; i < info->count; i++, at++) {
            cubes->image[at] = (tess_pixel_image){.height = info->height,
                                                  .width = info->width,
                                                  .dtype = info->dtype,
                                                  .has_nodata = info->has_nodata,
                                                  .nodata = info->nodata,
                                                  .masked = masked};
            cubes->file[at] = f;
            cubes->place[at] = i;
        }
    }
}

tess_status tess_pixel_cubes_open(const char *path, const tess_cube_settings *settings,
                                  tess_pixel_cubes *cubes, tess_error *error)
{
    *cubes = (tess_pixel_cubes){.settings = *settings, .ready = true};
    pthread_mutex_init(&cubes->mutex, NULL);
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
                                  .read = read,
                                  .missing = missing,
                                  .readers = readers_of(&cubes->list)};
    return TESS_OK;
}

void tess_pixel_cubes_rest(tess_pixel_cubes *cubes)
{
    tess_cube_close(cubes->main.cube);
    cubes->main.cube = NULL;
    for (int i = 0; i < TESS_PIXEL_READERS; i++) {
        tess_cube_close(cubes->readers[i].cube);
        cubes->readers[i].cube = NULL;
    }
}

void tess_pixel_cubes_close(tess_pixel_cubes *cubes)
{
    if (!cubes->ready)
        return;
    tess_pixel_cubes_rest(cubes);
    pthread_mutex_destroy(&cubes->mutex);
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
