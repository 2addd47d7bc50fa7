/* gdal_unheld.c: what an ENVI header would hold wrongly.
 *
 * The header has a rotation, but no shear, and GDAL writes the rotation for some projections only; it says so in no way that
 * a program can see. So a small file gets the same position in memory and is read again. If its corners are elsewhere, the
 * position is left out: none is better than a false one. Without a position, GDAL would write one for the projection alone,
 * so that is left out, too. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "io/gdal_drivers.h"
#include "io/gdal_metadata.h"

/* Whether two transforms agree at the corners, to a hundredth of a pixel. */
static bool same_place(const double a[6], const double b[6], const tess_image_info *info)
{
    static const double NEAR = 0.01;
    const double pixel = fmin(hypot(a[1], a[4]), hypot(a[2], a[5]));
    for (int corner = 0; corner < 4; corner++) {
        const double x = corner & 1 ? (double)info->width : 0, y = corner & 2 ? (double)info->height : 0,
                     right = a[0] - b[0] + (a[1] - b[1]) * x + (a[2] - b[2]) * y,
                     down = a[3] - b[3] + (a[4] - b[4]) * x + (a[5] - b[5]) * y;
        if (!(hypot(right, down) <= NEAR * pixel))
            return false;
    }
    return true;
}

/* Writes the position as the writer would, and reads it. False: there is none, or it cannot be tried. */
static bool try_position(GDALDatasetH like, const double wanted[6], double found[6])
{
    static const char *const envi[] = {"ENVI", NULL};
    char name[64], header[72];
    snprintf(name, sizeof name, "/vsimem/tess-trial-%p.img", (void *)found); /* other threads have others */
    snprintf(header, sizeof header, "%s.hdr", name);
    char **options = tess_gdal.CSLSetNameValue(NULL, "SUFFIX", "ADD");
    GDALDatasetH trial =
        tess_gdal.GDALCreate(tess_gdal.GDALGetDriverByName("ENVI"), name, 1, 1, 1, GDT_Byte, options);
    tess_gdal.CSLDestroy(options);
    if (!trial)
        return false;
    double transform[6];
    memcpy(transform, wanted, sizeof transform);
    if (like)
        tess_gdal_copy_georeference(like, trial);
    else
        tess_gdal.GDALSetGeoTransform(trial, transform);
    tess_gdal.GDALClose(trial);
    trial = tess_gdal.GDALOpenEx(name, GDAL_OF_RASTER | GDAL_OF_READONLY, envi, NULL, NULL);
    const bool good = trial && tess_gdal.GDALGetGeoTransform(trial, found) == CE_None;
    if (trial)
        tess_gdal.GDALClose(trial);
    tess_gdal.VSIUnlink(name);
    tess_gdal.VSIUnlink(header);
    return good;
}

static bool has_marks(GDALDatasetH like, const tess_image_info *info)
{
    bool found = false;
    const bool same = tess_gdal.GDALGetRasterCount(like) == info->channels;
    for (int b = 1; same && b <= info->channels && !found; b++) {
        const char *name = tess_gdal.GDALGetDescription(tess_gdal.GDALGetRasterBand(like, b));
        found = name && strpbrk(name, TESS_GDAL_MARKS);
    }
    return found;
}

unsigned tess_gdal_unheld(const char *target, void *like, const tess_image_info *info)
{
    GDALDatasetH dataset = like ? tess_gdal_reader_dataset(like) : NULL;
    double found[6] = {0};
    unsigned unheld = 0;
    if (strcmp(tess_gdal_driver_of(target)->name, "ENVI") != 0 || tess_gdal_load(NULL) != TESS_OK)
        return 0;
    if (info->says & TESS_SAYS_TRANSFORM && !(info->says & TESS_SAYS_POINTS) &&
        try_position(dataset, info->transform, found) && !same_place(info->transform, found, info))
        unheld |= TESS_SAYS_TRANSFORM | TESS_SAYS_PROJECTION;
    if (dataset && !info->only_place && has_marks(dataset, info))
        unheld |= TESS_SAYS_MARKS;
    tess_gdal.CPLErrorReset();
    return unheld;
}
