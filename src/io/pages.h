/* pages.h: the images of a TIFF file that holds several, each read as a file of its own.
 *
 * The list of directories is walked here, so that what GDAL is asked for is always a directory of the file that was named,
 * by its place in it: no part of a name is GDAL's to interpret. Overviews and masks are no pages. */
#ifndef TESS_IO_PAGES_H
#define TESS_IO_PAGES_H

#include "io/image.h"

typedef struct tess_pages {
    int64_t count;
    uint64_t *places; /* of the directories in the file; owned: tess_small_free */
} tess_pages;

/* A file that is no TIFF has one page, at place 0. */
tess_status tess_pages_of(const char *path, tess_pages *out, tess_error *error) TESS_MUST_CHECK;
/* Refuses a TIFF of several pages where one image is read, since the others would be lost. The message does not carry
 * its name. */
tess_status tess_pages_check_one(const char *path, tess_error *error) TESS_MUST_CHECK;
/* The page at `place`; 0: the file itself, the axes of an array as they are. */
tess_status tess_reader_open_page(tess_memory *memory, const char *path, uint64_t place, tess_reader **out,
                                  tess_error *error) TESS_MUST_CHECK;

#endif
