/* png_extras.c: writes extras into a PNG: the profile and the resolution through libpng, which checks them,
 * EXIF data and texts as raw chunks. */
#include <math.h>
#include <string.h>

#include "io/png.h"

void tess_png_set_header(const tess_image_info *image, png_structp png, png_infop info)
{
    static const int colour[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                                 PNG_COLOR_TYPE_RGB_ALPHA};
    png_set_user_limits(png, TESS_PNG_SIDE, TESS_PNG_SIDE);
    png_set_benign_errors(png, 1); /* an invalid colour profile is dropped, not fatal */
    png_set_IHDR(png, info, (png_uint_32)image->width, (png_uint_32)image->height,
                 image->dtype == TESS_U16 ? 16 : 8, colour[image->channels - 1], PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
}

/* Tries it without a file. */
bool tess_png_takes_profile(const tess_extras *extras, const tess_image_info *image)
{
    tess_png_say say = {0};
    volatile bool taken = false;
    png_structp png = png_create_write_struct_2(PNG_LIBPNG_VER_STRING, &say, tess_png_on_error,
                                                tess_png_on_warning, &say, tess_png_malloc, tess_png_free);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    if (info && !setjmp(png_jmpbuf(png))) {
        tess_png_set_header(image, png, info);
        tess_png_set_extras(extras, image, png, info);
        taken = png_get_valid(png, info, PNG_INFO_iCCP) != 0;
    }
    if (png)
        png_destroy_write_struct(&png, &info);
    return taken;
}

void tess_png_set_extras(const tess_extras *extras, const tess_image_info *image, png_structp png,
                         png_infop info)
{
    double metre[2];
    if (tess_extras_icc_fits(extras, image) && extras->icc.bytes <= UINT32_MAX)
        png_set_iCCP(png, info, extras->icc_name[0] ? extras->icc_name : "ICC profile",
                     PNG_COMPRESSION_TYPE_BASE, extras->icc.data, (png_uint_32)extras->icc.bytes);
    if (tess_extras_density(extras, TESS_DENSITY_METRE, metre) && metre[0] < 2e9 && metre[1] < 2e9)
        png_set_pHYs(png, info, (png_uint_32)lrint(metre[0]), (png_uint_32)lrint(metre[1]),
                     PNG_RESOLUTION_METER);
    else if (extras->unit == TESS_DENSITY_ASPECT && extras->density[0] != extras->density[1])
        png_set_pHYs(png, info, (png_uint_32)extras->density[0], (png_uint_32)extras->density[1],
                     PNG_RESOLUTION_UNKNOWN);
}

static void write_chunk(png_structp png, const char *kind, const tess_blob *body)
{
    if (body->data && body->bytes <= PNG_UINT_31_MAX)
        png_write_chunk(png, (png_const_bytep)kind, body->data, body->bytes);
}

/* The text may contain any bytes, so it is written by its length. */
static void write_xmp(png_structp png, const tess_blob *xmp)
{
    static const unsigned char head[] = "XML:com.adobe.xmp\0\0\0\0"; /* uncompressed, without a language */
    if (!xmp->data || xmp->bytes > PNG_UINT_31_MAX - sizeof head)
        return;
    png_write_chunk_start(png, (png_const_bytep) "iTXt", (png_uint_32)(sizeof head + xmp->bytes));
    png_write_chunk_data(png, head, sizeof head);
    png_write_chunk_data(png, xmp->data, xmp->bytes);
    png_write_chunk_end(png);
}

void tess_png_write_extras(const tess_extras *extras, const tess_image_info *image, png_structp png)
{
    if (tess_extras_background_fits(extras, image)) /* before the pixels, too */
        png_write_chunk(png, (png_const_bytep) "bKGD", extras->background, (size_t)extras->background_bytes);
    if (extras->has_codes) /* before the pixels, as here; there is no palette */
        png_write_chunk(png, (png_const_bytep) "cICP", extras->codes, sizeof extras->codes);
    write_chunk(png, "eXIf", &extras->exif);
    write_xmp(png, &extras->xmp);
    for (int i = 0; i < extras->note_count; i++)
        if ((unsigned char)extras->notes[i].kind[0] < 0x80)
            write_chunk(png, extras->notes[i].kind, &extras->notes[i].body);
}
