/* gdal_extras.c: the extras of a TIFF that GDAL can write: profile (as base64 text), XMP packet and resolution.
 * EXIF data is added after the file is closed (extras_tiff.c). */
#include "io/gdal_metadata.h"

#include <stdio.h>
#include <string.h>

static char *base64(const tess_blob *blob)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *text = tess_small_alloc((blob->bytes + 2) / 3 * 4 + 1, 1), *to = text;
    for (size_t i = 0; text && i < blob->bytes; i += 3) {
        const size_t some = blob->bytes - i < 3 ? blob->bytes - i : 3;
        const unsigned char *at = blob->data + i; /* a zero follows the last byte */
        const unsigned bits =
            (unsigned)at[0] << 16 | (some > 1 ? (unsigned)at[1] << 8 : 0) | (some > 2 ? (unsigned)at[2] : 0);
        for (size_t d = 0; d < 4; d++)
            *to++ = d <= some ? digits[bits >> (18 - 6 * d) & 63] : '=';
    }
    return text;
}

static void set_density(const tess_extras *extras, GDALDatasetH to)
{
    static const char *const names[] = {"TIFFTAG_XRESOLUTION", "TIFFTAG_YRESOLUTION"};
    const bool inch = extras->unit == TESS_DENSITY_INCH;
    double density[2] = {extras->density[0], extras->density[1]};
    const bool known = tess_extras_density(extras, inch ? TESS_DENSITY_INCH : TESS_DENSITY_CM, density);
    if (!known && (extras->unit != TESS_DENSITY_ASPECT || tess_extras_no_density(extras)))
        return;
    for (int i = 0; i < 2; i++) {
        char text[40];
        snprintf(text, sizeof text, "%.15g", density[i]);
        tess_gdal.GDALSetMetadataItem(to, names[i], text, NULL);
    }
    tess_gdal.GDALSetMetadataItem(to, "TIFFTAG_RESOLUTIONUNIT", !known ? "1" : inch ? "2" : "3", NULL);
}

bool tess_gdal_set_extras(const tess_extras *extras, const tess_image_info *info, GDALDatasetH to)
{
    set_density(extras, to);
    if (extras->xmp.data && strlen((const char *)extras->xmp.data) == extras->xmp.bytes) {
        char *packet[] = {(char *)extras->xmp.data, NULL};
        tess_gdal.GDALSetMetadata(to, packet, "xml:XMP");
    }
    if (!tess_extras_icc_fits(extras, info))
        return true;
    char *text = base64(&extras->icc);
    if (text)
        tess_gdal.GDALSetMetadataItem(to, "SOURCE_ICC_PROFILE", text, "COLOR_PROFILE");
    tess_small_free(text);
    return text != NULL;
}
