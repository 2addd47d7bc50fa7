/* extras.h: data that a photograph carries besides its pixels: EXIF data, colour profile, XMP packet, texts and
 * resolution (private to this room).
 *
 * Reading samples does not need this data, so separate code (extras_png.c, extras_jpeg.c, extras_tiff.c) reads
 * it when a writer asks, as bytes, and inserts it into any format that can hold it. EXIF data is never decoded
 * and encoded again, because maker notes do not survive that. Nothing in the file is trusted: lengths are
 * checked against the file's size and against a bound on the total, and a damaged part is left out. */
#ifndef TESS_IO_EXTRAS_H
#define TESS_IO_EXTRAS_H

#include <stdio.h>

#include "io/image.h"

enum { TESS_EXTRAS_MOST = 64 << 20 }; /* most bytes of a file's extras in total */

typedef struct tess_blob {
    unsigned char *data;
    size_t bytes;
} tess_blob;

/* A PNG text chunk ("tEXt", "zTXt", "iTXt"), another chunk that only a PNG can hold ("pCAL"), or a JPEG segment that
 * only a JPEG can hold: APP13 (IPTC, "\xed") or a part of the XMP beyond the main packet ("\xe1"). */
typedef struct tess_note {
    char kind[5];
    tess_blob body;
} tess_note;

typedef enum tess_density_unit {
    TESS_DENSITY_NONE,   /* unknown */
    TESS_DENSITY_ASPECT, /* only the aspect ratio is known */
    TESS_DENSITY_INCH,
    TESS_DENSITY_CM,
    TESS_DENSITY_METRE
} tess_density_unit;

/* What a JPEG file has behind its image. */
typedef struct tess_behind {
    uint64_t bytes; /* 0: nothing but padding */
    int pictures;   /* without previews */
    bool listed;    /* by MPF */
    bool film;
} tess_behind;

/* Data that only other programs understand, besides a TIFF's. */
typedef struct tess_foreign {
    uint64_t thermal, bytes; /* of a thermal camera; of others */
    char names[40];          /* of these: "APP3, APP7"; "": there are none */
} tess_foreign;

typedef struct tess_extras {
    bool known; /* these extras were read from the file, so GDAL's copy of them is not needed */
    tess_blob exif, icc, xmp;
    char icc_name[80];
    bool has_codes; /* a PNG's colour space by numbers (cICP), which only a PNG can hold */
    unsigned char codes[4];
    bool srgb;    /* this and the next: how a PNG gives its colours without a profile */
    double gamma; /* 0: not given */
    int background_bytes,
        background_depth; /* of a PNG's background colour (bKGD): 0: none; bits of a sample */
    unsigned char background[6];
    bool has_primaries;
    double primaries[8]; /* x and y of white, red, green and blue */
    tess_note *notes;
    int note_count;
    unsigned unheld;      /* of what a file says: what this target would hold wrongly (tess_write_format) */
    uint32_t frames;      /* of an animation, of which only the first is read; else 0 */
    tess_behind behind;   /* a JPEG's image; never written */
    tess_foreign foreign; /* never written */
    uint64_t layers, imagej; /* bytes of a TIFF's data for these programs (tiff_private.c); never written */
    double density[2];       /* pixels per unit, horizontally and vertically */
    tess_density_unit unit;
    int photometric;   /* for a TIFF, the number in its tag; else -1 */
    bool more_samples; /* a TIFF's pixels have more samples than its colours: alpha, or others */
    bool associated;   /* for a TIFF: the last sample is alpha, and the colours are multiplied by it */
    size_t bytes;      /* total size */
    size_t limit;      /* size of the file: no part can be larger */
    bool no_memory;
} tess_extras;

/* Loads the extras of a PNG, JPEG, TIFF, WebP or JPEG 2000 file. Other formats and damaged parts give nothing. */
tess_status tess_extras_load(const char *path, tess_extras *out, tess_error *error) TESS_MUST_CHECK;
void tess_extras_free(tess_extras *extras);
/* Bytes held while the extras are carried over, including the libraries' copies; 0 when negligible. */
size_t tess_extras_held(const tess_extras *extras);

/* 1 to 8, as in EXIF; 1 (upright) when there is no orientation. */
int tess_extras_orientation(const tess_extras *extras);
/* True when the profile's kind (gray, RGB or CMYK) matches the channels of the image. */
bool tess_extras_icc_fits(const tess_extras *extras, const tess_image_info *info);
/* True when libpng, which checks profiles, writes this one. */
bool tess_png_takes_profile(const tess_extras *extras, const tess_image_info *info);
/* True when the image, as a PNG, has a place for the background colour. */
bool tess_extras_background_fits(const tess_extras *extras, const tess_image_info *info);
/* True when there is no density, or only the 1:1 that a JPEG must write when it has none. */
bool tess_extras_no_density(const tess_extras *extras);
/* Pixels per unit; false when only the aspect ratio is known. */
bool tess_extras_density(const tess_extras *extras, tess_density_unit unit, double out[2]);

/* For the parsers. Each returns false, without a message, at the end of the file, beyond the bound or without
 * memory. */
bool tess_extras_read(tess_extras *extras, FILE *file, size_t bytes, tess_blob *out);
bool tess_extras_room(tess_extras *extras, size_t bytes, tess_blob *out);
void tess_extras_drop(tess_extras *extras, tess_blob *blob);
/* Takes ownership of the body. */
bool tess_extras_note(tess_extras *extras, const char *kind, tess_blob *body);

void tess_extras_from_png(FILE *file, tess_extras *out);
void tess_extras_from_jpeg(FILE *file, tess_extras *out);
void tess_extras_from_tiff(FILE *file, tess_extras *out);
void tess_extras_from_webp(FILE *file, tess_extras *out);
void tess_extras_from_jp2(FILE *file, tess_extras *out);

/* Finds what follows a JPEG's image; the file is at the body of its first scan's segment, which has `scan_length` bytes. */
void tess_behind_find(FILE *file, int scan_length, tess_extras *extras);
/* Counts the other pictures that an MPF segment lists; `tiff` is what follows its name. */
void tess_behind_from_mpf(const unsigned char *tiff, size_t bytes, tess_behind *out);
/* "312 bytes", "50 KB", "1.2 MB". */
void tess_extras_size(uint64_t bytes, char *to, size_t size);
/* Names the data that only one program understands; "" if there is none. */
void tess_private_words(const tess_extras *extras, char *to, size_t size);
/* Counts a segment of a JPEG, a chunk of a PNG, unless it is known. */
void tess_foreign_segment(tess_foreign *to, int marker, const tess_blob *body);
void tess_foreign_chunk(tess_foreign *to, const char *kind, uint64_t bytes);
void tess_foreign_words(const tess_foreign *from, char *to, size_t size);
/* Names it: "film behind the image (2.1 MB)"; "" if there is nothing to name. */
void tess_behind_words(const tess_behind *behind, char *to, size_t size);
/* Removes from a JPEG's XMP packet what it says of data behind the image. */
void tess_xmp_forget_behind(tess_blob *xmp);
/* Removes the statement that more XMP follows, which only a JPEG can hold. */
void tess_xmp_forget_more(tess_blob *xmp);

/* Whether gamma or primaries of a PNG differ from those that programs assume, and nothing else describes its colours. */
bool tess_extras_needs_profile(const tess_extras *extras, const tess_image_info *info);
/* Describes them by a profile; false if they make no sense. */
bool tess_extras_make_profile(tess_extras *extras, const tess_image_info *info);

/* Keyword and text of a PNG text chunk as "keyword\0text", inflated if necessary to at most `most` bytes. */
bool tess_png_note_text(tess_extras *extras, const tess_note *note, size_t most, tess_blob *out);
/* Names the other chunks that only a PNG can hold: "PNG chunks pCAL, oFFs"; "" if there are none. */
void tess_png_carried_words(const tess_extras *extras, char *to, size_t size);
/* Inflates a compressed stream of at most `most` inflated bytes. */
bool tess_extras_inflate(tess_extras *extras, const unsigned char *data, size_t bytes, size_t most,
                         tess_blob *out);

/* False for a segment of a JPEG, and for other chunks of a PNG. */
bool tess_note_is_text(const tess_note *note);
/* A text as the body of a JPEG's comment, which the caller drops; false if it cannot be one. */
bool tess_jpeg_comment(tess_extras *extras, const tess_note *note, tess_blob *out);
/* Names those of a PNG's texts that cannot; "" if there are none. */
void tess_jpeg_lost_texts(tess_extras *extras, char *to, size_t size);
/* True when the EXIF data fits into the single segment that a JPEG has for it; the same for the XMP packet. */
bool tess_jpeg_holds(const tess_extras *extras);
bool tess_jpeg_holds_xmp(const tess_extras *extras);
/* Copies the finished JPEG `from` to `to`, which must not exist, and inserts the extras before the image data. */
tess_status tess_jpeg_insert(const char *from, const char *to, tess_extras *extras,
                             const tess_image_info *info, tess_error *error) TESS_MUST_CHECK;
/* Adds the EXIF data and the orientation to the finished TIFF, in a new directory at its end. */
tess_status tess_tiff_insert(const char *path, const tess_extras *extras, tess_error *error) TESS_MUST_CHECK;

#endif
