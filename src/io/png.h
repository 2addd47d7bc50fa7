/* png.h: declarations shared by png_read.c and png_write.c: the struct through which libpng reports errors, and
 * its memory hooks.
 *
 * libpng reports errors by longjmp. Each of our functions that calls it sets the jump target itself, keeps
 * changing state in its heap struct (never in locals, which a jump may destroy), and finds the message in
 * `say`. */
#ifndef TESS_IO_PNG_H
#define TESS_IO_PNG_H

#include <png.h>
#include <stdio.h>

#include "io/format.h"

enum { TESS_PNG_SIDE = 1000000 }; /* pixels per side: libpng's default, enough for mosaics */

typedef struct tess_png_say {
    char text[160];
    bool no_memory;
    bool ended; /* the file ended, or the disk is full: not an error of libpng */
    int system; /* errno at that time */
} tess_png_say;

/* Callbacks; the error pointer and the memory pointer are the tess_png_say. */
void tess_png_on_error(png_structp png, png_const_charp text);
void tess_png_on_warning(png_structp png, png_const_charp text);
png_voidp tess_png_malloc(png_structp png, png_alloc_size_t bytes);
void tess_png_free(png_structp png, png_voidp data);

/* Copies gamma, chromaticities and sRGB intent of an open PNG reader (its state) if there is no profile. May
 * longjmp. */
void tess_png_copy_metadata(void *reader_state, png_structp png, png_infop info);

/* Call these before the header is written, and the last one right after it. All may longjmp. */
void tess_png_set_extras(const tess_extras *extras, const tess_image_info *image, png_structp png,
                         png_infop info);
void tess_png_set_header(const tess_image_info *image, png_structp png, png_infop info);
void tess_png_write_extras(const tess_extras *extras, const tess_image_info *image, png_structp png);

#endif
