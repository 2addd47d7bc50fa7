/* png.h: what png_read.c and png_write.c share: the struct through which libpng reports, and its memory
 * hooks.
 *
 * libpng reports errors by longjmp. Every function of ours that calls it sets the jump target itself, keeps
 * what changes in its heap struct (never in locals, which a jump may spoil), and finds the text in `say`. */
#ifndef TESS_IO_PNG_H
#define TESS_IO_PNG_H

#include <png.h>
#include <stdio.h>

#include "io/format.h"

enum { TESS_PNG_SIDE = 1000000 }; /* pixels a side: libpng's own default, wide enough for mosaics */

typedef struct tess_png_say {
    char text[160];
    bool no_memory;
    bool ended; /* the file ended, or the disk is full: not libpng's complaint */
    int system; /* errno of that moment */
} tess_png_say;

/* Callbacks; error pointer and memory pointer are the tess_png_say. */
void tess_png_on_error(png_structp png, png_const_charp text);
void tess_png_on_warning(png_structp png, png_const_charp text);
png_voidp tess_png_malloc(png_structp png, png_alloc_size_t bytes);
void tess_png_free(png_structp png, png_voidp data);

/* Copies gamma, chromaticities and sRGB intent of an open PNG reader (its state), where there is no profile. May jump. */
void tess_png_copy_metadata(void *reader_state, png_structp png, png_infop info);

/* Before the header is written, and right after it. Both may jump. */
void tess_png_set_extras(const tess_extras *extras, const tess_image_info *image, png_structp png,
                         png_infop info);
void tess_png_write_extras(const tess_extras *extras, png_structp png);

#endif
