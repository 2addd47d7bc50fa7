/* format.h: the interface between file formats and image.c and writer.c (private to this room).
 *
 * There is one struct of functions for reading and one for writing. The callers count rows, put the file's name
 * before every message, and own the temporary name, so a format handles only its bytes. `state` is the format's
 * own struct. When an optional library is missing, one table is replaced (without_gdal.c for gdal.c) and no
 * other code changes. */
#ifndef TESS_IO_FORMAT_H
#define TESS_IO_FORMAT_H

#include <math.h>

#include "io/extras.h"
#include "io/image.h"

typedef struct tess_read_format {
    const char *name;
    /* Loads the library that the format needs for this file, which need not exist; NULL: nothing to load. */
    tess_status (*load)(const char *path, tess_error *error);
    /* Fills *info, including held_bytes; the caller has set info->axes and info->page, and info->dtype to F64 if
     * doubles are to stay, and info->labels. On failure nothing stays open. */
    tess_status (*open)(tess_memory *memory, const char *path, tess_image_info *info, void **state,
                        tess_error *error);
    /* Reads rows [first, first + count), which are inside the image; in order, unless `any_order`. */
    tess_status (*rows)(void *state, int64_t first, int64_t count, void *rows, tess_error *error);
    /* Writes 1 (valid) or 0 for each sample of these rows, which were read before. NULL: all samples are valid. */
    tess_status (*valid)(void *state, int64_t first, int64_t count, const void *rows, unsigned char *valid,
                         tess_error *error);
    void (*close)(void *state);
    bool any_order; /* rows may be read in any order, and more than once */
} tess_read_format;

typedef struct tess_create {
    const char *target;  /* the final name, for its suffix and for side files */
    const char *temp;    /* an empty file in a private folder: write here; side files have longer names */
    bool part;           /* the file has been created by another process: `create` leaves what is there */
    tess_memory *memory; /* counter for the memory that the format holds */
    const tess_image_info *info;
    void *like;            /* state of the reader if its format is `like_format`, else NULL */
    const char *like_path; /* the reader's file, whatever its format; NULL: there is none */
    tess_extras *extras;   /* of the reader's file, whatever its format; may be empty; valid until `close` */
} tess_create;

typedef struct tess_write_format {
    const char *name;
    const tess_read_format *like_format;
    /* True when EXIF data can be written to this target; NULL: never. */
    bool (*holds_exif)(const char *target, const tess_extras *extras);
    /* The bits of tess_image_info.says that this target can hold; NULL: none. */
    unsigned (*holds)(const char *target, const tess_image_info *info);
    /* Those of them that it would hold wrongly for this file, so that they are left out; NULL: none. `like` is as in
     * tess_create. */
    unsigned (*unheld)(const char *target, void *like, const tess_image_info *info);
    /* Checks whether the format can hold such an image; called before anything is created. */
    tess_status (*accepts)(const char *target, const tess_image_info *info, tess_error *error);
    /* True when three channels mean red, green and blue in this target, so that others must be put in this order. */
    bool (*only_rgb)(const char *target);
    size_t (*held_bytes)(const char *target, const tess_image_info *info);
    tess_status (*create)(const tess_create *create, void **state, tess_error *error);
    tess_status (*rows)(void *state, int64_t first, int64_t count, const void *rows, tess_error *error);
    /* Writes everything to disk under the temporary name and checks it. `close` is still called afterwards. */
    tess_status (*finish)(void *state, tess_error *error);
    bool takes_parts; /* rows may be written in any order, and by several processes */
    /* Frees the state. The caller removes files that remain in the temporary folder. */
    void (*close)(void *state);
} tess_write_format;

struct tess_reader {
    tess_memory *memory;
    const tess_read_format *format;
    void *state;
    char *path;
    tess_image_info info;
    int64_t next_row;
    char *seen_end;    /* end of the rows that were read last */
    int64_t seen_rows; /* how many contiguous rows precede that */
};

extern const tess_read_format tess_read_png, tess_read_npy, tess_read_gdal;
extern const tess_write_format tess_write_png, tess_write_npy, tess_write_gdal;

/* Doubles are read as float32. True for a finite double that would become infinity. */
static inline bool tess_beyond_float(double value)
{
    return isfinite(value) && !isfinite((float)value);
}
tess_status tess_fail_beyond_float(tess_error *error);
/* Reverses the bytes of each sample. */
void tess_swap_samples(void *samples, int64_t count, int sample_bytes);

/* A row of the suffix table (image.c). `write` is NULL for formats that are only read. */
typedef struct tess_suffix {
    const char *suffix;
    const tess_read_format *read;
    const tess_write_format *write;
} tess_suffix;

/* The format of an existing file: by its content where that can be told, else by its suffix. */
tess_status tess_choose_format(const char *path, const tess_read_format **out,
                               tess_error *error) TESS_MUST_CHECK;
/* Returns NULL when the suffix is unknown. */
const tess_suffix *tess_suffix_of(const char *path);
/* Lists the suffixes that can be written, ".png, .npy, …", for messages. */
void tess_suffix_list(char *text, size_t bytes);
/* True when the name ends in this suffix, ignoring case. */
bool tess_suffix_is(const char *path, const char *suffix);

/* Names the metadata that the result cannot hold: "orientation 6 of the EXIF data, projection"; "" if nothing is lost. */
void tess_lost_name(const tess_write_format *format, const char *target, const tess_image_info *info,
                    tess_extras *extras, char *to, size_t size);

#endif
