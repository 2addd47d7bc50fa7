/* target.c: what writing to a name would replace.
 *
 * A link is followed and the file behind it is replaced, so that a link stays a link. The suffix chooses the
 * format. A link to a name of another format is refused, since the file would not match one of its two names. */
#define _XOPEN_SOURCE 700
#include "io/target.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/format.h"

enum { LINKS = 40 }; /* Linux follows as many */

bool tess_image_same_file(const char *one, const char *other)
{
    struct stat a, b;
    return stat(one, &a) == 0 && stat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

const char *tess_target_folder(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    snprintf(folder, size, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return slash ? slash + 1 : path;
}

/* Follows links only in the last part of the path, so that the end of the chain need not exist. Returns false
 * when the chain has no end. */
static bool follow(const char *path, char name[PATH_MAX])
{
    if (snprintf(name, PATH_MAX, "%s", path) >= PATH_MAX)
        return false;
    for (int i = 0; i < LINKS; i++) {
        struct stat about;
        char link[PATH_MAX], folder[PATH_MAX];
        if (lstat(name, &about) != 0 || !S_ISLNK(about.st_mode))
            return true;
        const ssize_t length = readlink(name, link, sizeof link - 1);
        if (length < 0)
            return false;
        link[length] = '\0';
        (void)tess_target_folder(name, folder, sizeof folder);
        const bool absolute = link[0] == '/', here = !strchr(name, '/');
        if (snprintf(name, PATH_MAX, "%s%s", absolute || here ? "" : folder, link) >= PATH_MAX)
            return false;
    }
    return false;
}

static bool same_name(const char *one, const char *other)
{
    char folder[2][PATH_MAX];
    const char *name = tess_target_folder(one, folder[0], sizeof folder[0]);
    const bool alike = strcmp(name, tess_target_folder(other, folder[1], sizeof folder[1])) == 0;
    return tess_image_same_file(one, other) ||
           (alike && (strcmp(folder[0], folder[1]) == 0 || tess_image_same_file(folder[0], folder[1])));
}

/* True when `path` would replace a side file of `raster`. The two paths may name the folder differently. */
static bool is_side_of(const char *path, const char *raster)
{
    char folder[2][PATH_MAX], beside[PATH_MAX];
    const char *name = tess_target_folder(path, folder[0], sizeof folder[0]);
    (void)tess_target_folder(raster, folder[1], sizeof folder[1]);
    if (strcmp(folder[0], folder[1]) != 0 && !tess_image_same_file(folder[0], folder[1]))
        return false;
    const int put = snprintf(beside, sizeof beside, "%s%s", strchr(raster, '/') ? folder[1] : "", name);
    return put < (int)sizeof beside &&
           (tess_envi_is_header(beside, raster) || tess_is_side_file(beside, raster));
}

bool tess_image_same_target(const char *one, const char *other)
{
    char first[PATH_MAX], second[PATH_MAX];
    if (!follow(one, first) || !follow(other, second))
        return same_name(one, other);
    return same_name(first, second) || is_side_of(first, other) || is_side_of(second, one) ||
           is_side_of(first, second) || is_side_of(second, first);
}

/* Suffixes of one format give the same result; NULL for a name that cannot be written. */
static const char *format_of(const char *path)
{
    const tess_suffix *known = tess_suffix_of(path);
    if (!known || !known->write)
        return NULL;
    const bool jpeg = tess_suffix_is(path, ".jpeg") || tess_suffix_is(path, ".jfif");
    return tess_suffix_is(path, ".tiff") ? ".tif" : jpeg ? ".jpg" : known->suffix;
}

static tess_status check_format(const char *path, const char *target, tess_error *error)
{
    const char *named = format_of(path), *behind = format_of(target);
    if (named == behind || (named && behind && strcmp(named, behind) == 0))
        return TESS_OK;
    return tess_fail(error, TESS_BAD_OPTION,
                     "%s: is a link to %s, a name of another format; give both the same suffix, or name the "
                     "file itself",
                     path, target);
}

tess_status tess_target_resolve(const char *path, char **target, tess_error *error)
{
    struct stat about;
    char name[PATH_MAX];
    *target = NULL;
    if (stat(path, &about) == 0) {
        if (S_ISDIR(about.st_mode))
            return tess_fail(error, TESS_BAD_OPTION, "%s: is a folder; name a file in it", path);
        if (!S_ISREG(about.st_mode))
            return tess_fail(error, TESS_BAD_OPTION, "%s: is not a regular file; images are written to files",
                             path);
    }
    if (!follow(path, name))
        return tess_fail(error, TESS_BAD_OPTION, "%s: is too long, or a chain of links without an end", path);
    TESS_TRY(check_format(path, name, error));
    *target = tess_small_strdup(name);
    return *target ? TESS_OK : tess_fail(error, TESS_NO_MEMORY, "%s: no memory to open the file", path);
}
