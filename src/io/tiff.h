/* tiff.h: the tag directories of TIFF files and EXIF data (private to this room).
 *
 * EXIF data is a small TIFF file without pixels. Both exist in either byte order, and TIFF in two widths. A
 * directory is read into memory with its subdirectories, and its numbers are converted to the byte order in
 * which it will be written. */
#ifndef TESS_IO_TIFF_H
#define TESS_IO_TIFF_H

#include <stdio.h>

#include "io/extras.h"

typedef struct tess_tiff {
    FILE *file;                /* either this or `data` is set */
    const unsigned char *data; /* not owned */
    uint64_t bytes;
    bool big_endian, wide; /* wide: BigTIFF */
    uint64_t first;        /* offset of the first directory */
} tess_tiff;

typedef struct tess_tiff_tag {
    uint16_t id, type;
    uint64_t count;
    tess_blob value;
    struct tess_tiff_directory *below; /* for a tag that points to a directory; it has no value then */
    bool raw;                          /* not loaded: `field` is the field in the file, perhaps an offset */
    unsigned char field[8];
} tess_tiff_tag;

typedef struct tess_tiff_directory {
    tess_tiff_tag *tags; /* sorted by id */
    int count;
} tess_tiff_directory;

bool tess_tiff_open_file(tess_tiff *tiff, FILE *file);
bool tess_tiff_open_data(tess_tiff *tiff, const unsigned char *data, size_t bytes);
bool tess_tiff_at(const tess_tiff *tiff, uint64_t offset, void *to, size_t bytes);
uint64_t tess_tiff_number(const tess_tiff *tiff, const unsigned char *at, int bytes);
/* Tag 274, or 0 when there is none. */
int tess_tiff_orientation(const unsigned char *data, size_t bytes);
/* Finds data that only the program understands which wrote the file. */
void tess_extras_find_private(const tess_tiff *tiff, tess_extras *out);
/* Sets the resolution from the EXIF data, if it has one: a JPEG without JFIF has no other. */
void tess_extras_density_from_exif(tess_extras *extras);

/* Loads those tags of the first directory that are in `wanted` (terminated by 0), with their subdirectories;
 * with NULL, all tags, raw. `most` limits their bytes. Returns false when there is no directory or no memory.
 * *next is the offset of the next directory. */
bool tess_tiff_load(const tess_tiff *tiff, const uint16_t *wanted, bool big_endian, size_t most,
                    tess_tiff_directory *out, uint64_t *next, bool *no_memory);
void tess_tiff_free(tess_tiff_directory *directory);

/* Serialises the directory and its subdirectories for the offset `base`; `next` is the offset of the next
 * directory. Returns NULL without memory; free with tess_small_free. */
unsigned char *tess_tiff_store(const tess_tiff_directory *directory, bool wide, bool big_endian,
                               uint64_t base, uint64_t next, size_t *bytes);

#endif
