/* store.h: the records of all files, within a budget of bytes.
 *
 * A page must stay small enough to be opened, whatever the files hold. When the texts of the records are above the budget,
 * the file that has most of them keeps every second record only, then every fourth, and so on; lines that are not kept are not
 * parsed, so that a gigabyte of lines costs little more than reading it. A single record above its own limit loses elements
 * of its long lists and the ends of its long strings. The page tells both. */
#ifndef TESS_REPORT_STORE_H
#define TESS_REPORT_STORE_H

#include "report/lines.h"

enum {
    TESS_STORE_BYTES = 2 << 20,    /* of all records, as they are in a page */
    TESS_STORE_RECORD = 256 << 10, /* of one */
    TESS_STORE_FILES = 256
};

typedef struct tess_stored {
    char *text;      /* the object, on one line */
    size_t bytes;    /* of the text */
    size_t embedded; /* in a page, with what is around it */
    int file;
    int64_t index, line; /* in the file; index counts from 0, line from 1 */
    bool shortened;
} tess_stored;

typedef struct tess_stored_file {
    const char *path; /* the caller's */
    int64_t stride;   /* every so many records were kept */
    int64_t kept;
    size_t bytes;
    tess_line_facts facts;
} tess_stored_file;

/* All zero is an empty store. */
typedef struct tess_store {
    tess_stored *records; /* in the order of files and lines */
    int64_t count, room;
    tess_stored_file files[TESS_STORE_FILES];
    int file_count;
    size_t bytes;
} tess_store;

/* Adds the records of a file. `path` must outlive the store. Messages contain the path. */
tess_status tess_store_read(tess_store *store, const char *path, tess_stop *stop,
                            tess_error *error) TESS_MUST_CHECK;
void tess_store_clear(tess_store *store);

/* shorten.c: makes a record smaller: at most `most` elements of each list and object, at most `letters` bytes of each
 * string. Long lists keep elements evenly, the first and last among them. Frees the record; NULL: no memory. */
tess_json *tess_shorten(tess_json *record, int64_t most, size_t letters);

#endif
