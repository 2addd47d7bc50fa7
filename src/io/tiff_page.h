/* tiff_page.h: what a TIFF's directory describes: the picture, a preview of it, or a mask (private to this room). */
#ifndef TESS_IO_TIFF_PAGE_H
#define TESS_IO_TIFF_PAGE_H

#include "io/tiff.h"

enum { TESS_TIFF_REDUCED = 1, TESS_TIFF_MASK = 4 }; /* bits of NewSubfileType */

typedef struct tess_tiff_page {
    int64_t number;  /* in the list of directories, from 1; 0: a subdirectory */
    uint64_t offset; /* of the directory */
    uint64_t kind, width, height;
    bool raw;               /* of a camera: samples of a colour filter, or a DNG */
    uint16_t below_type;    /* of the tag SubIFDs */
    uint64_t below_count;   /* 0: there is none */
    unsigned char below[8]; /* its field: the offset, or the offset of the offsets */
} tess_tiff_page;

/* Reads the directory at *place, and moves *place to the next one. */
bool tess_tiff_page_read(const tess_tiff *tiff, uint64_t *place, tess_tiff_page *out);
/* Copies the page to *full if the first page is a preview of it, and a smaller one than of *full. */
void tess_tiff_page_prefer(const tess_tiff_page *first, const tess_tiff_page *page, tess_tiff_page *full);
/* Refuses a file whose first page is a preview: of *full, unless that has no size, or of one of its subdirectories. */
tess_status tess_tiff_page_check(const tess_tiff *tiff, const tess_tiff_page *first, tess_tiff_page *full,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
