/* tiff.h: directories of tags as TIFF files and EXIF data have them (private to this room).
 *
 * EXIF data is a small TIFF file without pixels; both come in either byte order, and TIFF in two widths. A directory
 * is read into memory with the directories below it, its numbers in the byte order of where it will be written. */
#ifndef TESS_IO_TIFF_H
#define TESS_IO_TIFF_H

#include <stdio.h>

#include "io/extras.h"

typedef struct tess_tiff {
    FILE *file;                /* one of these two */
    const unsigned char *data; /* not owned */
    uint64_t bytes;
    bool big_endian, wide; /* wide: BigTIFF */
    uint64_t first;        /* where the first directory lies */
} tess_tiff;

typedef struct tess_tiff_tag {
    uint16_t id, type;
    uint64_t count;
    tess_blob value;
    struct tess_tiff_directory *below; /* of a tag that points to a directory; then it has no value */
    bool raw;                          /* not loaded: `field` is what stands in the file, an offset perhaps */
    unsigned char field[8];
} tess_tiff_tag;

typedef struct tess_tiff_directory {
    tess_tiff_tag *tags; /* by rising id */
    int count;
} tess_tiff_directory;

bool tess_tiff_open_file(tess_tiff *tiff, FILE *file);
bool tess_tiff_open_data(tess_tiff *tiff, const unsigned char *data, size_t bytes);
bool tess_tiff_at(const tess_tiff *tiff, uint64_t offset, void *to, size_t bytes);
uint64_t tess_tiff_number(const tess_tiff *tiff, const unsigned char *at, int bytes);
/* 274, or 0 when there is none. */
int tess_tiff_orientation(const unsigned char *data, size_t bytes);
/* The resolution that the EXIF data gives, if it does: a JPEG without JFIF has no other. */
void tess_extras_density_from_exif(tess_extras *extras);

/* The first directory's tags among `wanted` (ended by 0), with what lies below them; with NULL all of them, raw. `most`
 * bounds their bytes. False: there is no directory, or no memory. *next is the offset of the one that follows. */
bool tess_tiff_load(const tess_tiff *tiff, const uint16_t *wanted, bool big_endian, size_t most,
                    tess_tiff_directory *out, uint64_t *next, bool *no_memory);
void tess_tiff_free(tess_tiff_directory *directory);

/* Bytes of the directory and all below it as they will lie from `base` on; `next` is the offset of the directory that
 * follows. NULL without memory; free with tess_small_free. */
unsigned char *tess_tiff_store(const tess_tiff_directory *directory, bool wide, bool big_endian,
                               uint64_t base, uint64_t next, size_t *bytes);

#endif
