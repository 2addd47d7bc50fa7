/* gdal_drivers.c: the formats that are written through GDAL: which images each can hold, and how much memory
 * writing needs. The planner asks this before anything is opened. */
#include "io/gdal_drivers.h"

#include <string.h>

#include "base/checked.h"
#include "io/gdal_void.h"
#include "io/jpeg_probe.h"
#include "io/target.h"
#include "io/world.h"

static const tess_gdal_driver drivers[] = {
    {".tif", "GTiff", "PIXEL", true}, {".tiff", "GTiff", "PIXEL", true}, {".jpg", "JPEG", NULL, true},
    {".jpeg", "JPEG", NULL, true},    {".jfif", "JPEG", NULL, true},     {".bmp", "BMP", NULL, false},
    {".img", "ENVI", "BSQ", false},   {".bsq", "ENVI", "BSQ", false},    {".bil", "ENVI", "BIL", false},
    {".bip", "ENVI", "BIP", false},
};

const tess_gdal_driver *tess_gdal_driver_of(const char *path)
{
    for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
        if (tess_suffix_is(path, drivers[i].suffix))
            return &drivers[i];
    return &drivers[0];
}

GDALDataType tess_gdal_type_of(tess_dtype dtype)
{
    switch (dtype) {
    case TESS_U8:
        return GDT_Byte;
    case TESS_U16:
        return GDT_UInt16;
    case TESS_I16:
        return GDT_Int16;
    case TESS_U32:
        return GDT_UInt32;
    case TESS_I32:
        return GDT_Int32;
    case TESS_F32:
        return GDT_Float32;
    case TESS_F64:
        return GDT_Float64;
    default:
        return GDT_Unknown;
    }
}

size_t tess_gdal_row_bytes(const tess_image_info *info)
{
    return (size_t)info->width * (size_t)info->channels * tess_dtype_size(info->dtype);
}

tess_status tess_gdal_accepts(const char *target, const tess_image_info *info, tess_error *error)
{
    const char *name = tess_gdal_driver_of(target)->name;
    if (tess_gdal_type_of(info->dtype) == GDT_Unknown || info->channels > 65535)
        return tess_fail(error, TESS_BAD_OPTION,
                         "%d channels of %s cannot be written as %s; write .npy of float32", info->channels,
                         tess_dtype_word(info->dtype), name);
    bool small = strcmp(name, "JPEG") == 0 || strcmp(name, "BMP") == 0;
    if (small && (info->dtype != TESS_U8 || info->alpha || (info->channels != 1 && info->channels != 3)))
        return tess_fail(
            error, TESS_BAD_OPTION,
            "%s holds gray or RGB of uint8 without alpha, not %d channels of %s%s; write .png or .tif", name,
            info->channels, tess_dtype_word(info->dtype), info->alpha ? " with alpha" : "");
    if (small && (info->height > 65500 || info->width > 65500))
        return tess_fail(error, TESS_BAD_OPTION,
                         "%s holds at most 65500 pixels a side, not %lld x %lld; write .tif", name,
                         (long long)info->height, (long long)info->width);
    if (strcmp(name, "ENVI") != 0)
        return TESS_OK;
    char *header = NULL;
    tess_status status = tess_envi_header(target, &header, error);
    tess_small_free(header);
    return status;
}

bool tess_gdal_only_rgb(const char *target)
{
    const char *name = tess_gdal_driver_of(target)->name;
    return strcmp(name, "JPEG") == 0 || strcmp(name, "BMP") == 0;
}

/* GTiff makes strips of about 8 KiB. At most two of them and the library's own strip are in use at a time. */
void tess_gdal_measure(const char *target, const tess_image_info *info, int64_t *cache, int64_t *counted)
{
    const tess_gdal_driver *how = tess_gdal_driver_of(target);
    int64_t row = (int64_t)tess_gdal_row_bytes(info), strip = how->stripped ? tess_max_i64(row, 8192) : row;
    int64_t image = row * info->height;
    *cache = 2 * (strip + 512 * (int64_t)info->channels);
    *counted = tess_min_i64(*cache, 2 * image) + tess_min_i64(2 * strip, 2 * image);
    if (strcmp(how->name, "JPEG") == 0)
        *counted += (int64_t)tess_jpeg_write_coefficients(info->height, info->width, info->channels);
}

bool tess_gdal_keeps_mask(const char *target, const tess_image_info *info)
{
    return info->mask_band && strcmp(tess_gdal_driver_of(target)->name, "GTiff") == 0;
}

size_t tess_gdal_held_bytes(const char *target, const tess_image_info *info)
{
    int64_t cache, counted;
    tess_gdal_measure(target, info, &cache, &counted);
    return (size_t)counted +
           (tess_gdal_keeps_mask(target, info) ? tess_gdal_copy_mask_bytes(info->width) : 0);
}

unsigned tess_gdal_holds(const char *target, const tess_image_info *info)
{
    const char *name = tess_gdal_driver_of(target)->name;
    /* What is said of inks does not hold for the red, green and blue made of them. */
    const unsigned place = TESS_SAYS_TRANSFORM | TESS_SAYS_PROJECTION,
                   values = info->foreign ? 0 : TESS_SAYS_NODATA | TESS_SAYS_SCALE | TESS_SAYS_NAMES,
                   unit = info->foreign ? 0 : TESS_SAYS_UNIT;
    if (strcmp(name, "GTiff") == 0)
        return place | TESS_SAYS_POINTS | TESS_SAYS_RATIONAL | values | unit | TESS_SAYS_TAGS |
               TESS_SAYS_WHITE | (info->mask_band ? TESS_SAYS_MASK : 0);
    if (strcmp(name, "ENVI") == 0)
        return place | values | TESS_SAYS_CATEGORIES |
               TESS_SAYS_FIELDS; /* only four control points, without their projection */
    return tess_world_holds(target, info) |
           (strcmp(name, "JPEG") == 0 ? TESS_SAYS_TEXTS | TESS_SAYS_IPTC | TESS_SAYS_MORE_XMP : 0);
}

bool tess_gdal_holds_exif(const char *target, const tess_extras *extras)
{
    const char *name = tess_gdal_driver_of(target)->name;
    return strcmp(name, "GTiff") == 0 || (strcmp(name, "JPEG") == 0 && tess_jpeg_holds(extras));
}
