/* pam.c: GDAL's "persistent auxiliary metadata", of which only nodata values, scales and offsets are read.
 *
 *   <PAMDataset> <PAMRasterBand band="1"> <NoDataValue le_hex_equiv="...">-9999</NoDataValue> <Scale>0.1</Scale> ...
 *
 * GDAL's own reader of these files is disabled, since they may refer to other files. Elements are identified by
 * their depth: a Subdataset has its own PAMDataset, which does not describe this raster. */
#define _XOPEN_SOURCE 700
#include "io/pam.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/temp.h"

enum { LARGEST = 1 << 20, MOST_BANDS = 65536 };
static const char SPACE[] = " \t\r\n";

static bool is_named(const char *tag, const char *name)
{
    const size_t length = strlen(name);
    return strncmp(tag, name, length) == 0 && strchr(" \t\r\n/>", tag[length]);
}

/* Reads the number in band="..." of the tag that ends at `end`; 0 when there is none. */
static int band_of(const char *tag, const char *end)
{
    for (const char *at = tag; end - at > 6; at++) {
        if (strncmp(at, "band=", 5) != 0 || !strchr(SPACE, at[-1]) || (at[5] != '"' && at[5] != '\''))
            continue;
        const long band = strtol(at + 6, NULL, 10);
        return band > 0 && band <= MOST_BANDS ? (int)band : 0;
    }
    return 0;
}

/* The whole text up to the next tag must be the number. */
static bool number_at(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && *(end + strspn(end, SPACE)) == '<';
}

/* Finds the numbers in elements of this name, of each band. */
static void scan(const char *text, const char *name, int bands, tess_nodata *values)
{
    bool inside = false; /* the outermost element is a PAMDataset */
    int band = 0;
    int64_t depth = 0;
    for (const char *at = text; (at = strchr(at, '<'));) {
        const bool comment = strncmp(at, "<!--", 4) == 0, head = at[1] == '?';
        const char *tag = at + 1, *end = strstr(tag, comment ? "-->" : head ? "?>" : ">");
        if (!end || (*tag == '!' && !comment)) /* truncated, or with texts that could hide tags */
            return;
        at = end;
        if (comment || head)
            continue;
        if (*tag == '/') {
            depth--;
            continue;
        }
        double value;
        if (depth == 0)
            inside = is_named(tag, "PAMDataset");
        if (depth == 1)
            band = inside && is_named(tag, "PAMRasterBand") ? band_of(tag, end) : 0;
        if (depth == 2 && band > 0 && band <= bands && is_named(tag, name) && number_at(end + 1, &value))
            values[band - 1] = (tess_nodata){true, value};
        depth += end[-1] != '/';
    }
}

/* Reads the side file; *text is NULL when there is none, or when it is larger than 1 MiB. The caller frees it. */
static tess_status load(const char *raster, char **text, tess_error *error)
{
    char name[PATH_MAX];
    FILE *file = NULL;
    *text = NULL;
    if (snprintf(name, sizeof name, "%s.aux.xml", raster) >= (int)sizeof name ||
        tess_file_open(name, &file, NULL) != TESS_OK)
        return TESS_OK;
    char *all = tess_small_alloc(LARGEST + 1, 1);
    const size_t length = all ? fread(all, 1, LARGEST, file) : 0;
    fclose(file);
    if (!all)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to read %s", name);
    all[length] = '\0';
    if (length < LARGEST)
        *text = all;
    else
        tess_small_free(all);
    return TESS_OK;
}

tess_status tess_pam_nodata(const char *raster, int bands, tess_nodata *values, tess_error *error)
{
    char *text;
    TESS_TRY(load(raster, &text, error));
    if (text)
        scan(text, "NoDataValue", bands, values);
    tess_small_free(text);
    return TESS_OK;
}

tess_status tess_pam_meaning(const char *raster, tess_image_info *info, tess_error *error)
{
    const int bands = info->channels;
    char *text;
    if (info->says & TESS_SAYS_SCALE)
        return TESS_OK;
    TESS_TRY(load(raster, &text, error));
    if (!text)
        return TESS_OK;
    tess_nodata *scales = tess_small_alloc(2 * (size_t)bands, sizeof *scales), *offsets = scales + bands;
    for (int b = 0; scales && b < bands; b++)
        scales[b].value = 1;
    if (scales) {
        scan(text, "Scale", bands, scales);
        scan(text, "Offset", bands, offsets);
    }
    tess_small_free(text);
    if (!scales)
        return tess_fail(error, TESS_NO_MEMORY, "no memory to open the file");
    bool alike = true, any = false;
    for (int b = 0; b < bands; b++) {
        const double scale = scales[b].value, offset = offsets[b].value;
        any = any || scale != 1 || offset != 0;
        alike = alike && isnormal(scale) && isfinite(offset) && scale == scales[0].value &&
                offset == offsets[0].value;
    }
    if (any && alike)
        info->scale = scales[0].value, info->offset = offsets[0].value;
    if (any)
        info->says |= alike ? TESS_SAYS_SCALE : TESS_SAYS_SCALES;
    tess_small_free(scales);
    return TESS_OK;
}

tess_status tess_pam_write(const char *raster, int bands, const tess_nodata *values, tess_error *error)
{
    char name[PATH_MAX];
    if (snprintf(name, sizeof name, "%s.aux.xml", raster) >= (int)sizeof name)
        return tess_temp_fail(ENAMETOOLONG, error);
    FILE *file = fopen(name, "wx");
    if (!file)
        return tess_temp_fail(errno, error);
    bool good = fputs("<PAMDataset>\n", file) >= 0;
    for (int b = 0; b < bands; b++)
        if (values[b].any)
            good = fprintf(file,
                           "  <PAMRasterBand band=\"%d\">\n    <NoDataValue>%.17g</NoDataValue>\n"
                           "  </PAMRasterBand>\n",
                           b + 1, values[b].value) >= 0 &&
                   good;
    good = fputs("</PAMDataset>\n", file) >= 0 && good;
    const int why = errno;
    good = fclose(file) == 0 && good;
    return good ? TESS_OK : tess_temp_fail(why ? why : EIO, error);
}
