/* world.c: a world file is a text of six numbers: x by column, y by column, x by row, y by row, and the
 * position of the centre of the upper left pixel (GDAL's transform has its corner). NAME.pgw belongs to
 * NAME.png, NAME.jgw to NAME.jpg.
 *
 * GDAL itself reads the world files of its formats; PNG files are read without GDAL. */
#define _XOPEN_SOURCE 700
#include "io/world.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/temp.h"
#include "io/format.h"

enum { LARGEST = 1024 };

typedef enum world_name { SHORT, LONG, ANY, NAMES } world_name; /* .pgw, .pngw, .wld */

static bool name_of(const char *raster, world_name kind, bool capitals, char name[PATH_MAX])
{
    const char *dot = strrchr(raster, '.');
    const size_t letters = dot ? strlen(dot + 1) : 0;
    if (letters < 3 || strchr(dot, '/'))
        return false;
    const int stem = (int)(dot + 1 - raster);
    const int bytes = kind == ANY ? snprintf(name, PATH_MAX, "%.*swld", stem, raster)
                      : kind == LONG
                          ? snprintf(name, PATH_MAX, "%sw", raster)
                          : snprintf(name, PATH_MAX, "%.*s%c%cw", stem, raster, dot[1], dot[letters]);
    if (bytes >= PATH_MAX)
        return false;
    for (char *at = name + stem; *at; at++)
        *at = (char)(capitals ? toupper((unsigned char)*at) : tolower((unsigned char)*at));
    return true;
}

static bool read_numbers(const char *name, double numbers[6])
{
    FILE *file = NULL;
    char text[LARGEST + 1];
    if (tess_file_open(name, &file, NULL) != TESS_OK)
        return false;
    const size_t length = fread(text, 1, LARGEST, file);
    fclose(file);
    text[length] = '\0';
    char *at = text;
    for (int i = 0; i < 6; i++) {
        char *end;
        numbers[i] = strtod(at, &end);
        if (end == at || !isfinite(numbers[i]))
            return false;
        at = end;
    }
    return numbers[0] * numbers[3] != numbers[1] * numbers[2];
}

void tess_world_read(const char *raster, tess_image_info *info)
{
    char name[PATH_MAX];
    double n[6];
    bool found = false;
    for (int i = 0; i < 2 * NAMES && !found; i++)
        found = name_of(raster, (world_name)(i / 2), i % 2, name) && read_numbers(name, n);
    if (!found)
        return;
    const double transform[6] = {n[4] - 0.5 * (n[0] + n[2]), n[0], n[2],
                                 n[5] - 0.5 * (n[1] + n[3]), n[1], n[3]};
    memcpy(info->transform, transform, sizeof transform);
    info->says |= TESS_SAYS_TRANSFORM;
}

void tess_world_remove(const char *raster)
{
    static const world_name own[] = {SHORT, LONG};
    char name[PATH_MAX];
    struct stat about;
    for (int i = 0; i < 4; i++)
        if (name_of(raster, own[i / 2], i % 2, name) && lstat(name, &about) == 0 && S_ISREG(about.st_mode))
            (void)unlink(name);
}

bool tess_world_used(const char *target)
{
    return tess_suffix_is(target, ".png") || tess_suffix_is(target, ".jpg") ||
           tess_suffix_is(target, ".jpeg") || tess_suffix_is(target, ".jfif") ||
           tess_suffix_is(target, ".bmp");
}

unsigned tess_world_holds(const char *target, const tess_image_info *info)
{
    (void)info;
    return tess_world_used(target) ? TESS_SAYS_TRANSFORM : 0;
}

static tess_status write_numbers(const double numbers[6], const char *format, const char *temp,
                                 const char *target, tess_error *error)
{
    char name[PATH_MAX];
    if (!name_of(target, SHORT, false, name))
        return tess_fail(error, TESS_BAD_OPTION, "has a name for which there is no world file");
    FILE *file = fopen(temp, "w");
    bool good = file != NULL;
    for (int i = 0; i < 6 && good; i++)
        good = fprintf(file, format, numbers[i]) > 0;
    if (file && fclose(file) != 0)
        good = false;
    if (!good)
        return tess_fail(error, TESS_IO_FAILED, "its world file cannot be written (%s)", strerror(errno));
    return tess_temp_place(temp, name, error);
}

tess_status tess_world_write(const double t[6], const char *temp, const char *target, tess_error *error)
{
    const double numbers[6] = {
        t[1], t[4], t[2], t[5], t[0] + 0.5 * (t[1] + t[2]), t[3] + 0.5 * (t[4] + t[5])};
    return write_numbers(numbers, "%.17g\n", temp, target, error);
}

tess_status tess_world_write_corner(const double t[6], const char *temp, const char *target,
                                    tess_error *error)
{
    const double numbers[6] = {t[1], t[2], t[4], t[5], t[0], t[3]};
    return write_numbers(numbers, "%.10f\n", temp, target, error);
}
