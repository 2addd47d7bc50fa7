/* Finds the image files of a data set. Names are compared by bytes, not by the locale's order, because a sample is
 * chosen by its place in the list. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "io/image.h"
#include "train/data_images.h"

enum { DEEPEST = 32 }; /* folders in folders */

typedef struct walk {
    const tess_images_settings *settings;
    tess_file_list *list;
    bool *used;       /* the names to exclude that were found */
    int64_t excluded; /* files in all, of the path in work */
    int64_t folders;  /* that were not entered */
    int64_t links;    /* to folders: never entered */
} walk;

static tess_status no_memory(tess_error *error)
{
    return tess_fail(error, TESS_NO_MEMORY, "no memory for a list of files");
}

/* True when `path` is `name` or ends in "/name". */
static bool named(const char *path, const char *name)
{
    const size_t length = strlen(path), tail = strlen(name);
    if (tail == 0 || tail > length || strcmp(path + length - tail, name) != 0)
        return false;
    return tail == length || path[length - tail - 1] == '/';
}

/* Takes ownership of `path`. */
static tess_status add_file(walk *w, char *path, tess_error *error)
{
    tess_file_list *list = w->list;
    for (int i = 0; i < w->settings->exclude_count; i++)
        if (named(path, w->settings->exclude[i])) {
            w->used[i] = true;
            w->excluded++;
            tess_small_free(path);
            return TESS_OK;
        }
    if (list->count == list->room) {
        const int64_t room = list->room ? 2 * list->room : 256;
        char **paths = tess_small_realloc(list->paths, (size_t)room, sizeof *paths);
        if (!paths) {
            tess_small_free(path);
            return no_memory(error);
        }
        list->paths = paths;
        list->room = room;
    }
    list->paths[list->count++] = path;
    return TESS_OK;
}

static char *join(const char *folder, const char *name)
{
    const size_t length = strlen(folder), bytes = length + strlen(name) + 2;
    char *path = tess_small_alloc(bytes, 1);
    if (path)
        snprintf(path, bytes, "%s%s%s", folder, length && folder[length - 1] == '/' ? "" : "/", name);
    return path;
}

static int visible(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static tess_status walk_folder(walk *w, const char *folder, int depth, tess_error *error);

/* A link to a folder may lead up, round in a circle, or to the images of the validation, and images that it leads to
 * inside would count twice. So it is not followed; links to files are. */
static tess_status take_entry(walk *w, const char *folder, const char *name, int depth, tess_error *error)
{
    char *path = join(folder, name);
    struct stat facts, own;
    if (!path)
        return no_memory(error);
    if (stat(path, &facts) == 0 && S_ISDIR(facts.st_mode)) {
        tess_status status = TESS_OK;
        const bool link = lstat(path, &own) == 0 && S_ISLNK(own.st_mode);
        w->links += link;
        w->folders += !link && !w->settings->recursive;
        if (!link && w->settings->recursive && depth < DEEPEST)
            status = walk_folder(w, path, depth + 1, error);
        tess_small_free(path);
        return status;
    }
    if (tess_image_is_known(name))
        return add_file(w, path, error);
    tess_small_free(path);
    return TESS_OK;
}

static tess_status walk_folder(walk *w, const char *folder, int depth, tess_error *error)
{
    struct dirent **names = NULL;
    const int found = scandir(folder, &names, visible, by_bytes);
    if (found < 0)
        return tess_fail(error, TESS_IO_FAILED, "%s: %s", folder, strerror(errno));
    tess_status status = TESS_OK;
    for (int i = 0; i < found; i++) {
        if (status == TESS_OK)
            status = take_entry(w, folder, names[i]->d_name, depth, error);
        free(names[i]);
    }
    free(names);
    return status;
}

static tess_status take_path(walk *w, const char *path, tess_error *error)
{
    struct stat facts;
    if (stat(path, &facts) != 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: no such file or folder", path);
    if (!S_ISDIR(facts.st_mode)) {
        char *copy = tess_small_strdup(path);
        return copy ? add_file(w, copy, error) : no_memory(error);
    }
    const int64_t before = w->list->count;
    w->excluded = w->folders = w->links = 0;
    TESS_TRY(walk_folder(w, path, 0, error));
    w->list->links += w->links;
    if (w->list->count > before)
        return TESS_OK;
    if (w->excluded > 0)
        return tess_fail(error, TESS_BAD_INPUT, "%s: every image file in it is excluded", path);
    return tess_fail(error, TESS_BAD_INPUT, "%s: holds no image file (png, jpg, tif, ...)%s", path,
                     w->folders > 0 ? "; `recursive` looks into the folders in it"
                     : w->links > 0 ? "; links to folders are not followed: name those folders"
                                    : "");
}

tess_status tess_file_list_make(const tess_images_settings *s, tess_file_list *list, tess_error *error)
{
    *list = (tess_file_list){0};
    walk w = {.settings = s, .list = list};
    w.used = tess_small_alloc((size_t)s->exclude_count + 1, sizeof *w.used);
    tess_status status = w.used ? TESS_OK : no_memory(error);
    for (int i = 0; i < s->path_count && status == TESS_OK; i++)
        status = take_path(&w, s->paths[i], error);
    if (status == TESS_OK && list->count == 0)
        status = tess_fail(error, TESS_BAD_INPUT, "no image to train on: name a folder or files");
    for (int i = 0; i < s->exclude_count && status == TESS_OK; i++)
        if (!w.used[i])
            status = tess_fail(error, TESS_BAD_INPUT, "%s is to be excluded, but no image has this name",
                               s->exclude[i]);
    tess_small_free(w.used);
    if (status != TESS_OK)
        tess_file_list_free(list);
    return status;
}

void tess_file_list_free(tess_file_list *list)
{
    for (int64_t i = 0; i < list->count; i++)
        tess_small_free(list->paths[i]);
    tess_small_free(list->paths);
    *list = (tess_file_list){0};
}
