/* envi_header.c: which header belongs to which ENVI raster.
 *
 * Both y.bsq and y.bil may be described by y.hdr, so writing one could replace the header of the other, which
 * would then be read wrongly. GDAL and ENVI also accept y.bsq.hdr, which belongs to y.bsq alone. A raster gets
 * that name when y.hdr is already in use. */
#define _XOPEN_SOURCE 700
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "io/format.h"
#include "io/target.h"

/* Suffixes of files beside a raster, other than images of other formats, that have no ENVI header. */
static const char *const plain[] = {".hdr", ".json", ".txt", ".xml", ".csv", ".md", ".log", ".safetensors"};
static const char *const raw[] = {".img", ".bil", ".bip", ".bsq"};

static bool ends_in(const char *name, const char *const *suffixes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (tess_suffix_is(name, suffixes[i]))
            return true;
    return false;
}

/* Images of formats that describe themselves have no separate header. */
static bool may_have_header(const char *name)
{
    if (ends_in(name, plain, sizeof plain / sizeof *plain))
        return false;
    return !tess_suffix_of(name) || ends_in(name, raw, sizeof raw / sizeof *raw);
}

/* Length of `name` without its suffix. */
static size_t stem_of(const char *name)
{
    const char *slash = strrchr(name, '/'), *dot = strrchr(name, '.');
    return dot && dot != name && (!slash || dot > slash + 1) ? (size_t)(dot - name) : strlen(name);
}

bool tess_envi_is_header(const char *path, const char *raster)
{
    const size_t length = strlen(path);
    if (!may_have_header(raster) || length < 5 || strcasecmp(path + length - 4, ".hdr") != 0)
        return false;
    const size_t named = length - 4;
    return (named == strlen(raster) && strncmp(path, raster, named) == 0) ||
           (named == stem_of(raster) && strncmp(path, raster, named) == 0);
}

/* True when `header` may describe a file other than `target`. */
static bool has_other_owner(const char *header, const char *target)
{
    char folder[PATH_MAX];
    const char *name = tess_target_folder(header, folder, sizeof folder);
    const char *own = strrchr(target, '/') ? strrchr(target, '/') + 1 : target;
    DIR *list = opendir(folder);
    bool found = false;
    for (struct dirent *entry; list && !found && (entry = readdir(list));)
        found = strcmp(entry->d_name, own) != 0 && strcmp(entry->d_name, name) != 0 &&
                tess_envi_is_header(name, entry->d_name);
    if (list)
        closedir(list);
    return found;
}

static bool exists(const char *path)
{
    struct stat about;
    return lstat(path, &about) == 0;
}

tess_status tess_envi_header(const char *target, char **header, tess_error *error)
{
    const size_t bytes = strlen(target) + 5;
    char *shared = tess_small_alloc(bytes, 1), *own = tess_small_alloc(bytes, 1);
    *header = NULL;
    if (!shared || !own) {
        tess_small_free(shared);
        tess_small_free(own);
        return tess_fail(error, TESS_NO_MEMORY, "no memory to write the header");
    }
    snprintf(shared, bytes, "%.*s.hdr", (int)stem_of(target), target);
    snprintf(own, bytes, "%s.hdr", target);
    /* If the raster does not exist, an existing NAME.hdr belongs to another file: a header, or an image of that
     * format. */
    const bool taken = exists(shared) && (!exists(target) || has_other_owner(shared, target));
    *header = taken || exists(own) ? own : shared;
    tess_small_free(*header == own ? shared : own);
    if (!exists(*header) || !has_other_owner(*header, target))
        return TESS_OK;
    tess_status status = tess_fail(error, TESS_BAD_OPTION,
                                   "its header would replace %s, which may belong to another file; write to "
                                   "another name",
                                   *header);
    tess_small_free(*header);
    *header = NULL;
    return status;
}
