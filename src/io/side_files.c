/* side_files.c: files beside a raster that change how GDAL reads it.
 *
 * NAME.SUFFIX.msk marks void samples, NAME.SUFFIX.aux.xml has a nodata value, statistics and more,
 * NAME.SUFFIX.ovr has smaller copies, and a world file has the position. They are wrong beside a raster that replaced
 * theirs: a photograph would get the position of the map that had its name. */
#define _XOPEN_SOURCE 700
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/format.h"
#include "io/target.h"
#include "io/world.h"

static const char *const stale[] = {".ovr", ".aux.xml", ".msk", NULL}, *const nothing[] = {NULL};

/* GDAL does not read NPY files. */
const char *const *tess_image_stale_suffixes(const char *target)
{
    return tess_suffix_is(target, ".npy") ? nothing : stale;
}

/* True when `suffix`, including its dot, is that of a world file for a raster with suffix `of`: .tfw and .tifw
 * for .tif, or .wld. */
static bool is_world(const char *suffix, const char *of)
{
    const size_t length = strlen(of);
    if (strcasecmp(suffix, ".wld") == 0)
        return true;
    char name[16];
    if (length < 3 || length + 2 > sizeof name)
        return false;
    snprintf(name, sizeof name, "%sw", of);
    if (strcasecmp(suffix, name) == 0)
        return true;
    snprintf(name, sizeof name, ".%c%cw", of[1], of[length - 1]);
    return strcasecmp(suffix, name) == 0;
}

bool tess_is_side_file(const char *path, const char *raster)
{
    const size_t length = strlen(raster);
    const char *const *known = tess_image_stale_suffixes(raster);
    if (!known[0])
        return false;
    if (strncmp(path, raster, length) == 0)
        for (int i = 0; known[i]; i++)
            if (strcasecmp(path + length, known[i]) == 0)
                return true;
    const char *slash = strrchr(raster, '/'), *dot = strrchr(raster, '.'), *end = strrchr(path, '.');
    if (!dot || !end || (slash && dot < slash) || dot - raster != end - path)
        return false;
    return strncmp(path, raster, (size_t)(dot - raster)) == 0 && is_world(end, dot);
}

void tess_remove_stale_sides(const char *target, bool own, bool placed, const char *keep)
{
    const char *const *known = tess_image_stale_suffixes(target);
    if (known[0] && !own && !placed)
        tess_world_remove(target);
    for (int i = 0; known[i]; i++) {
        char name[PATH_MAX];
        struct stat about;
        if ((own && strcmp(known[i], ".ovr") != 0) ||
            snprintf(name, sizeof name, "%s%s", target, known[i]) >= (int)sizeof name)
            continue;
        if (lstat(name, &about) == 0 && S_ISREG(about.st_mode) && !(keep && tess_image_same_file(name, keep)))
            (void)unlink(name);
    }
}
