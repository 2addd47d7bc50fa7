/* cube_list.c: the cubes of a folder. They are one set of data, so they must have the same bands. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "io/cube_impl.h"
#include "io/cube_marks.h"
#include "io/target.h"

static const double SAME_NM = 0.01; /* headers round their wavelengths */

size_t tess_cube_stem(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *dot = strrchr(name, '.');
    return dot && dot != name ? (size_t)(dot - path) : strlen(path);
}

static bool is_mask(const char *path)
{
    static const char ends[] = "_mask";
    const size_t stem = tess_cube_stem(path), length = sizeof ends - 1;
    return stem >= length && strncasecmp(path + stem - length, ends, length) == 0;
}

/* Previews and masks; a cube in one of these formats is named itself. */
static bool is_picture(const char *path)
{
    static const char *const suffixes[] = {".png", ".jpg", ".jpeg", ".bmp", ".webp", ".pgm", ".ppm"};
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++)
        if (tess_suffix_is(path, suffixes[i]))
            return true;
    return false;
}

static bool is_file(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISREG(about.st_mode);
}

/* Files without a known suffix are cubes if they have a header. */
static bool has_header(const char *path)
{
    char header[PATH_MAX];
    const int lengths[2] = {(int)strlen(path), (int)tess_cube_stem(path)};
    for (int i = 0; i < 2; i++)
        if (snprintf(header, sizeof header, "%.*s.hdr", lengths[i], path) < (int)sizeof header &&
            tess_envi_is_header(header, path) && is_file(header))
            return true;
    return false;
}

static bool is_cube(const char *path)
{
    return is_file(path) && !is_mask(path) && !is_picture(path) && (tess_suffix_of(path) || has_header(path));
}

static int is_visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static bool add_path(tess_cube_list *list, const char *path)
{
    tess_cube_entry *more = tess_small_realloc(list->entries, (size_t)list->count + 1, sizeof *more);
    if (!more)
        return false;
    list->entries = more;
    more[list->count] = (tess_cube_entry){.path = tess_small_strdup(path)};
    return more[list->count++].path != NULL;
}

static tess_status find_files(const char *folder, tess_cube_list *list, tess_error *error)
{
    struct dirent **names = NULL;
    char path[PATH_MAX];
    const int found = scandir(folder, &names, is_visible, by_bytes);
    if (found < 0)
        return tess_fail(error, TESS_IO_FAILED, "%s: cannot be listed (%s)", folder, strerror(errno));
    const bool slash = folder[0] && folder[strlen(folder) - 1] == '/';
    bool room = true;
    for (int i = 0; i < found; i++) {
        if (room &&
            snprintf(path, sizeof path, "%s%s%s", folder, slash ? "" : "/", names[i]->d_name) <
                (int)sizeof path &&
            is_cube(path))
            room = add_path(list, path);
        free(names[i]);
    }
    free(names);
    if (!room)
        return tess_fail(error, TESS_NO_MEMORY, "%s: no memory for the names of its files", folder);
    if (list->count == 0)
        return tess_fail(
            error, TESS_BAD_INPUT,
            "%s: holds no cubes; they are .npy files, ENVI rasters with their headers, or GeoTIFFs", folder);
    return TESS_OK;
}

/* Compares a file with those before it. `known`: which of those gave the wavelengths. */
static tess_status compare(tess_cube_list *list, int64_t at, int64_t *known, tess_error *error)
{
    const tess_cube_entry *first = &list->entries[0], *entry = &list->entries[at];
    const double *own = entry->info.wavelengths;
    if (entry->info.bands != first->info.bands)
        return tess_fail(error, TESS_BAD_INPUT,
                         "%s has %d bands, but %s has %d; the cubes of a folder must have the same bands",
                         entry->path, entry->info.bands, first->path, first->info.bands);
    for (int b = 0; own && list->wavelengths && b < list->bands; b++)
        if (fabs(own[b] - list->wavelengths[b]) > SAME_NM)
            return tess_fail(
                error, TESS_BAD_INPUT,
                "band %d of %s is at %.2f nm, but that of %s at %.2f nm; the cubes of a folder must have "
                "the same wavelengths",
                b + 1, entry->path, own[b], list->entries[*known].path, list->wavelengths[b]);
    if (own && !list->wavelengths) {
        list->wavelengths = tess_small_alloc((size_t)list->bands, sizeof *own);
        if (!list->wavelengths)
            return tess_fail(error, TESS_NO_MEMORY, "%s: no memory for its wavelengths", entry->path);
        memcpy(list->wavelengths, own, (size_t)list->bands * sizeof *own);
        *known = at;
    }
    return TESS_OK;
}

static tess_status look_at(tess_cube_list *list, const tess_cube_settings *settings, tess_error *error)
{
    int64_t known = 0, images, pixels;
    for (int64_t i = 0; i < list->count; i++) {
        tess_cube *cube = NULL;
        tess_cube_entry *entry = &list->entries[i];
        TESS_TRY(tess_stop_check(settings->stop, error));
        TESS_TRY(tess_cube_open(entry->path, settings, &cube, error));
        entry->info = *tess_cube_describe(cube);
        list->bands = list->entries[0].info.bands;
        tess_status status = compare(list, i, &known, error);
        if (status == TESS_OK && settings->find_marks)
            status = tess_cube_look(cube, &entry->marks, error);
        tess_cube_close(cube);
        TESS_TRY(status);
        entry->info.wavelengths = NULL;
        if (!tess_mul_i64(entry->info.height * entry->info.width, entry->info.count, &pixels) ||
            !tess_add_i64(list->pixels, pixels, &list->pixels) ||
            !tess_add_i64(list->images, entry->info.count, &images))
            return tess_fail(error, TESS_BAD_INPUT, "%s: too many pixels", entry->path);
        list->images = images;
    }
    for (int64_t i = 0; i < list->count; i++)
        list->entries[i].info.wavelengths = list->wavelengths;
    tess_cube_marks_settle(list);
    return TESS_OK;
}

tess_status tess_cube_list_make(const char *path, const tess_cube_settings *settings, tess_cube_list *list,
                                tess_error *error)
{
    struct stat about;
    *list = (tess_cube_list){0};
    tess_status status = TESS_OK;
    if (stat(path, &about) == 0 && S_ISDIR(about.st_mode))
        status = find_files(path, list, error);
    else if (!add_path(list, path))
        status = tess_fail(error, TESS_NO_MEMORY, "%s: no memory for its name", path);
    if (status == TESS_OK)
        status = look_at(list, settings, error);
    if (status != TESS_OK)
        tess_cube_list_free(list);
    return status;
}

void tess_cube_list_free(tess_cube_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        tess_small_free(list->entries[i].path);
    tess_small_free(list->entries);
    tess_small_free(list->wavelengths);
    *list = (tess_cube_list){0};
}
