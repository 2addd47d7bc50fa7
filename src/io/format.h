/* format.h: what a file format gives to image.c and writer.c (private to this room).
 *
 * One struct of functions for reading and one for writing. The callers keep count of rows, put the file's
 * name before every message, and own the temporary name, so a format only knows its bytes. `state` is the
 * format's own struct. A missing optional library swaps one table (without_gdal.c for gdal.c), and nothing
 * else knows. */
#ifndef TESS_IO_FORMAT_H
#define TESS_IO_FORMAT_H

#include <math.h>

#include "io/extras.h"
#include "io/image.h"

typedef struct tess_read_format {
    const char *name;
    /* Loads what is behind the format, as far as this file (which need not exist) will use it; NULL: nothing
     * to load. */
    tess_status (*load)(const char *path, tess_error *error);
    /* Fills *info, held_bytes included; info->axes and info->page come as the caller asked. On failure nothing stays open. */
    tess_status (*open)(tess_memory *memory, const char *path, tess_image_info *info, void **state,
                        tess_error *error);
    /* Rows [first, first + count), inside the image, always in order. */
    tess_status (*rows)(void *state, int64_t first, int64_t count, void *rows, tess_error *error);
    /* 1 or 0 for each sample of these rows, which were read before; NULL: all hold values. */
    tess_status (*valid)(void *state, int64_t first, int64_t count, const void *rows, unsigned char *valid,
                         tess_error *error);
    void (*close)(void *state);
} tess_read_format;

typedef struct tess_create {
    const char *target;  /* the final name, for its suffix and for files that go beside it */
    const char *temp;    /* exists, empty, in a private folder: write here, side files under longer names */
    tess_memory *memory; /* where the format counts what it holds */
    const tess_image_info *info;
    void *like;          /* state of a reader whose table is `like_format`, or NULL */
    tess_extras *extras; /* of any reader's file, perhaps empty; they stay until `close` */
} tess_create;

typedef struct tess_write_format {
    const char *name;
    const tess_read_format *like_format;
    /* EXIF data goes into this target; NULL: no. */
    bool (*holds_exif)(const char *target, const tess_extras *extras);
    /* What this target holds of tess_image_info.says; NULL: nothing. */
    unsigned (*holds)(const char *target, const tess_image_info *info);
    /* Whether the format can hold such an image: asked before anything is created. */
    tess_status (*accepts)(const char *target, const tess_image_info *info, tess_error *error);
    size_t (*held_bytes)(const char *target, const tess_image_info *info);
    tess_status (*create)(const tess_create *create, void **state, tess_error *error);
    tess_status (*rows)(void *state, int64_t first, int64_t count, const void *rows, tess_error *error);
    /* Everything on disk under the temporary name, checked. `close` still follows. */
    tess_status (*finish)(void *state, tess_error *error);
    /* Frees. Files that are left in the temporary's folder are removed by the caller. */
    void (*close)(void *state);
} tess_write_format;

struct tess_reader {
    const tess_read_format *format;
    void *state;
    char *path;
    tess_image_info info;
    int64_t next_row;
    char *seen_end;    /* where the rows that were read last end */
    int64_t seen_rows; /* and how many lie before that, one after another */
};

extern const tess_read_format tess_read_png, tess_read_npy, tess_read_gdal;
extern const tess_write_format tess_write_png, tess_write_npy, tess_write_gdal;

/* Doubles are read as float32: a finite one that would become infinity there, as if it were no value at all. */
static inline bool tess_beyond_float(double value)
{
    return isfinite(value) && !isfinite((float)value);
}
tess_status tess_fail_beyond_float(tess_error *error);

/* The rows of the suffix table (image.c). `write` is NULL for formats that are only read. */
typedef struct tess_suffix {
    const char *suffix;
    const tess_read_format *read;
    const tess_write_format *write;
} tess_suffix;

/* NULL when the suffix is unknown. */
const tess_suffix *tess_suffix_of(const char *path);
/* ".png, .npy, …" of the formats that can be written, for messages. */
void tess_suffix_list(char *text, size_t bytes);
/* Case-insensitive: the name ends in this suffix. */
bool tess_suffix_is(const char *path, const char *suffix);

#endif
