/* Reads views from files, one view at a time; images are read one row at a time. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/pages.h"
#include "job/reconstruct/problem/values.h"
#include "job/reconstruct/problem/views.h"

enum { MOST_VIEWS = 100000 };

struct tess_views {
    tess_memory *memory;
    tess_stop *stop;
    tess_views_info info;
    char *path;
    char **names; /* of a folder's files; NULL: none */
    tess_pages pages;
    tess_values array;   /* of an array; otherwise closed */
    int64_t rows_a_view; /* of the file */
    tess_kept kept;
    int64_t next;
};

static int wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && tess_image_is_known(entry->d_name);
}

static char *join(const char *folder, const char *name)
{
    const size_t length = strlen(folder);
    char *path = tess_small_alloc(length + strlen(name) + 2, 1);
    if (!path)
        return NULL;
    memcpy(path, folder, length);
    path[length] = '/';
    strcpy(path + length + 1, name);
    return path;
}

bool tess_views_same_file(const char *path, const char *views)
{
    struct stat about;
    struct dirent **found = NULL;
    if (stat(views, &about) != 0 || !S_ISDIR(about.st_mode))
        return false;
    bool same = false;
    const int count = scandir(views, &found, wanted, NULL);
    for (int i = 0; i < count; i++) {
        char *inside = same ? NULL : join(views, found[i]->d_name);
        same = same || (inside && tess_image_same_target(path, inside)); /* also through links */
        tess_small_free(inside);
        free(found[i]);
    }
    free(found);
    return same;
}

static tess_status list_folder(tess_views *v, tess_error *error)
{
    struct dirent **found = NULL;
    const int count = scandir(v->path, &found, wanted, NULL);
    tess_status status = TESS_OK;
    if (count < 0)
        return tess_fail(error, TESS_IO_FAILED, "%s: %s", v->path, strerror(errno));
    if (count == 0 || count > MOST_VIEWS)
        status =
            tess_fail(error, TESS_BAD_INPUT,
                      "%s: holds %d image files (tif, png, npy, ...); a folder of views has one a view, at "
                      "most %d",
                      v->path, count, MOST_VIEWS);
    if (status == TESS_OK && !(v->names = tess_small_alloc((size_t)count, sizeof *v->names)))
        status = tess_fail(error, TESS_NO_MEMORY, "no memory for %d names", count);
    for (int i = 0; i < count; i++) {
        if (status == TESS_OK && !(v->names[v->info.views++] = join(v->path, found[i]->d_name)))
            status = tess_fail(error, TESS_NO_MEMORY, "no memory for %d names", count);
        free(found[i]);
    }
    free(found);
    if (status == TESS_OK)
        status = tess_view_names_sort(v->names, count, error);
    if (status == TESS_OK) {
        v->info.first = v->names[0];
        v->info.last = v->names[count - 1];
    }
    return status;
}

static tess_status open_view(const tess_views *v, int64_t view, tess_values *values, tess_error *error)
{
    TESS_TRY(tess_values_open(v->memory, v->names ? v->names[view] : v->path, TESS_AXES_PLAIN,
                              v->names ? 0 : v->pages.places[view], values, error));
    values->stop = v->stop;
    return TESS_OK;
}

static tess_status check_view(const tess_views *v, int64_t view, const tess_image_info *is, tess_error *error)
{
    const char *name = v->names ? v->names[view] : v->path;
    if (is->channels != 1 || is->depth > 0)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: view %lld has %d channels; a view is one gray image, (rows, columns)", name,
                         (long long)view, is->channels);
    if (v->info.rows && (is->height != v->info.rows || is->width != v->info.columns))
        return tess_fail(error, TESS_BAD_INPUT, "%s: view %lld is %lld x %lld, but the first is %lld x %lld",
                         name, (long long)view, (long long)is->height, (long long)is->width,
                         (long long)v->info.rows, (long long)v->info.columns);
    if (v->info.rows && (is->dtype != TESS_F32) != v->info.integers)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: view %lld holds %s, but the first holds %s; save all views in one type", name,
                         (long long)view, v->info.integers ? "floats" : "integers",
                         v->info.integers ? "integers" : "floats");
    return TESS_OK;
}

static tess_status describe_images(tess_views *v, tess_error *error)
{
    tess_values values = {0};
    const tess_status status = open_view(v, 0, &values, error);
    const tess_image_info first = values.info;
    v->info.held = status == TESS_OK ? tess_values_held(&values, false) : 0;
    tess_values_close(&values);
    TESS_TRY(status);
    TESS_TRY(check_view(v, 0, &first, error));
    v->info.rows = first.height;
    v->info.columns = first.width;
    v->info.channels = 1;
    v->info.integers = first.dtype != TESS_F32;
    v->rows_a_view = first.height;
    return TESS_OK;
}

/* One file: a view is a row, or a slice if there are three axes. */
static tess_status describe_array(tess_views *v, tess_error *error)
{
    TESS_TRY(open_view(v, 0, &v->array, error));
    const tess_image_info *is = &v->array.info;
    const bool slices = is->depth > 0, deep = slices || is->channels > 1,
               picture = is->axes != TESS_AXES_HW && is->axes != TESS_AXES_HWC;
    if (is->alpha)
        return tess_fail(error, TESS_UNSUPPORTED, "%s: has an alpha channel; save it without one", v->path);
    if (picture && is->channels > 1)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s: has %d channels, which are not columns of a detector; save it as one channel",
                         v->path, is->channels);
    v->info.array = true;
    v->info.flat = !deep;
    v->info.integers = is->dtype != TESS_F32;
    v->info.views = slices ? is->depth : is->height;
    v->info.rows = slices ? is->height : deep ? is->width : 1;
    v->info.columns = slices ? is->width * is->channels : deep ? is->channels : is->width;
    v->info.channels = is->channels;
    v->rows_a_view = slices ? is->height : 1;
    v->info.held = tess_values_held(&v->array, false);
    return TESS_OK;
}

tess_status tess_views_open(tess_memory *memory, tess_stop *stop, const char *path, tess_views **out,
                            tess_error *error)
{
    struct stat about;
    tess_views *v = tess_small_alloc(1, sizeof *v);
    *out = v;
    if (!v || !(v->path = tess_small_strdup(path)))
        return tess_fail(error, TESS_NO_MEMORY, "no memory for a name");
    v->memory = memory;
    v->stop = stop;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode)) {
        TESS_TRY(list_folder(v, error));
        return describe_images(v, error);
    }
    TESS_TRY(tess_pages_of(path, &v->pages, error));
    v->info.views = v->pages.count;
    return v->pages.count > 1 ? describe_images(v, error) : describe_array(v, error);
}

const tess_views_info *tess_views_about(const tess_views *v)
{
    return &v->info;
}

/* A row of the file is one row of the view, or the whole view. */
static tess_status read_view(tess_views *v, tess_values *from, int64_t row, float *values, tess_error *error)
{
    const int64_t samples = from->info.width * from->info.channels, columns = v->info.columns;
    for (int64_t y = 0; y < v->rows_a_view; y++) {
        TESS_TRY(tess_values_next(from, error));
        if (v->rows_a_view > 1 || v->info.rows == 1) {
            if (row >= 0 && y != row)
                continue;
            TESS_TRY(tess_values_take(from, 1, 0, samples, values, &v->kept, error));
            values += samples;
            continue;
        }
        const int64_t first = row >= 0 ? row : 0, rows = row >= 0 ? 1 : v->info.rows;
        TESS_TRY(tess_values_take(from, 1, first * columns, rows * columns, values, &v->kept, error));
    }
    return TESS_OK;
}

tess_status tess_views_next(tess_views *v, int64_t row, float *values, tess_error *error)
{
    const int64_t view = v->next++;
    if (v->info.array)
        return read_view(v, &v->array, row, values, error);
    tess_values one = {0};
    tess_status status = open_view(v, view, &one, error);
    if (status == TESS_OK)
        status = check_view(v, view, &one.info, error);
    if (status == TESS_OK)
        status = read_view(v, &one, row, values, error);
    tess_values_close(&one);
    return status;
}

tess_status tess_views_check(const tess_views *v, tess_error *error)
{
    return tess_kept_check(&v->kept, v->path, error);
}

void tess_views_close(tess_views *v)
{
    if (!v)
        return;
    tess_values_close(&v->array);
    for (int64_t i = 0; v->names && i < v->info.views; i++)
        tess_small_free(v->names[i]);
    tess_small_free(v->names);
    tess_small_free(v->pages.places);
    tess_small_free(v->path);
    tess_small_free(v);
}
