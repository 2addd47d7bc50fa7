/* extras.h: what a photograph carries besides its pixels: EXIF data, colour profile, XMP packet, texts and resolution
 * (private to this room).
 *
 * Readers of samples do not need it, so it is taken from the file by code of its own (extras_png.c, extras_jpeg.c,
 * extras_tiff.c) when a writer asks, as bytes, and put into any format that holds it: EXIF data is never decoded and
 * encoded again, since maker notes do not survive that. Everything here comes from the file and is trusted in nothing:
 * lengths are checked against the file's own size and a bound in all, and a damaged part is left out. */
#ifndef TESS_IO_EXTRAS_H
#define TESS_IO_EXTRAS_H

#include <stdio.h>

#include "io/image.h"

enum { TESS_EXTRAS_MOST = 64 << 20 }; /* bytes of a file's extras in all */

typedef struct tess_blob {
    unsigned char *data;
    size_t bytes;
} tess_blob;

/* A chunk of PNG text ("tEXt", "zTXt", "iTXt"), or a JPEG segment that only a JPEG can hold ("\xed"). */
typedef struct tess_note {
    char kind[5];
    tess_blob body;
} tess_note;

typedef enum tess_density_unit {
    TESS_DENSITY_NONE,   /* nothing is known */
    TESS_DENSITY_ASPECT, /* only the ratio */
    TESS_DENSITY_INCH,
    TESS_DENSITY_CM,
    TESS_DENSITY_METRE
} tess_density_unit;

typedef struct tess_extras {
    bool known; /* a file whose extras are read here: GDAL's copy of them is not needed */
    tess_blob exif, icc, xmp;
    char icc_name[80];
    tess_note *notes;
    int note_count;
    double density[2]; /* pixels a unit, across and down */
    tess_density_unit unit;
    int photometric; /* of a TIFF, the number in its tag; else -1 */
    bool associated; /* of a TIFF: its last sample is alpha that the others are multiplied by */
    size_t bytes;    /* held in all */
    size_t limit;    /* no part is larger than the file */
    bool no_memory;
} tess_extras;

/* Of a PNG, JPEG, TIFF or WebP file; of others, and of what is damaged, nothing. */
tess_status tess_extras_load(const char *path, tess_extras *out, tess_error *error) TESS_MUST_CHECK;
void tess_extras_free(tess_extras *extras);
/* What carrying them holds, copies of the libraries included; 0 when it is next to nothing. */
size_t tess_extras_held(const tess_extras *extras);

/* 1 to 8, as EXIF has it; 1 (upright) when nothing is said. */
int tess_extras_orientation(const tess_extras *extras);
/* A profile is for gray, for colours or for inks: the image's channels must be those. */
bool tess_extras_icc_fits(const tess_extras *extras, const tess_image_info *info);
/* Nothing is said, or the 1 to 1 that a JPEG must write when it has nothing to say. */
bool tess_extras_no_density(const tess_extras *extras);
/* Pixels a unit; false when only the ratio is known. */
bool tess_extras_density(const tess_extras *extras, tess_density_unit unit, double out[2]);

/* For the parsers. Each is false, and says nothing, at the end of the file, past the bound or without memory. */
bool tess_extras_read(tess_extras *extras, FILE *file, size_t bytes, tess_blob *out);
bool tess_extras_room(tess_extras *extras, size_t bytes, tess_blob *out);
void tess_extras_drop(tess_extras *extras, tess_blob *blob);
/* Takes over the body. */
bool tess_extras_note(tess_extras *extras, const char *kind, tess_blob *body);

void tess_extras_from_png(FILE *file, tess_extras *out);
void tess_extras_from_jpeg(FILE *file, tess_extras *out);
void tess_extras_from_tiff(FILE *file, tess_extras *out);
void tess_extras_from_webp(FILE *file, tess_extras *out);

/* Keyword and text of a chunk of PNG text, inflated if need be to at most `most` bytes: "keyword\0text". */
bool tess_png_note_text(tess_extras *extras, const tess_note *note, size_t most, tess_blob *out);
/* Of a compressed stream, if it has at most `most` bytes. */
bool tess_extras_inflate(tess_extras *extras, const unsigned char *data, size_t bytes, size_t most,
                         tess_blob *out);

/* The EXIF data fits the one segment that a JPEG has for it. */
bool tess_jpeg_holds(const tess_extras *extras);
/* Copies the finished JPEG `from` to the file `to`, which must not exist, with the extras in its head. */
tess_status tess_jpeg_insert(const char *from, const char *to, tess_extras *extras,
                             const tess_image_info *info, tess_error *error) TESS_MUST_CHECK;
/* Adds to the finished TIFF the EXIF data, with the orientation, by a new directory at its end. */
tess_status tess_tiff_insert(const char *path, const tess_extras *extras, tess_error *error) TESS_MUST_CHECK;

#endif
