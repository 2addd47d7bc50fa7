/* pages.h: the images of a TIFF file that holds several, each read like a separate file.
 *
 * The list of directories is walked here, and GDAL opens a directory of the named file by its offset: GDAL
 * never interprets a part of a name. Overviews and masks are not pages. A file of one image whose first directory is a
 * preview of it (camera raw) is refused: GDAL would read the preview. */
#ifndef TESS_IO_PAGES_H
#define TESS_IO_PAGES_H

#include "io/image.h"

typedef struct tess_pages {
    int64_t count;
    int64_t first; /* number of the first page's directory, from 1: previews and masks may stand before it */
    uint64_t *places; /* offsets of the directories in the file; owned: tess_small_free */
} tess_pages;

/* A file that is not a TIFF has one page, at place 0. */
tess_status tess_pages_of(const char *path, tess_pages *out, tess_error *error) TESS_MUST_CHECK;
/* Refuses a TIFF of several pages where one image is read, since the others would be lost. The message does not
 * contain the name. */
tess_status tess_pages_check_one(const char *path, tess_error *error) TESS_MUST_CHECK;
/* Opens the page at `place`; 0: the file itself, with the axes of an array as stored. Doubles stay doubles. */
tess_status tess_reader_open_page(tess_memory *memory, const char *path, uint64_t place, tess_reader **out,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
