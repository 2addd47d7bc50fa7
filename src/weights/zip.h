/* zip.h: the entries of a zip archive and the positions of their bytes. It serves .pth files, so nothing is
 * ever unpacked. */
#ifndef TESS_WEIGHTS_ZIP_H
#define TESS_WEIGHTS_ZIP_H

#include "weights/weights_format.h"

typedef struct tess_zip_entry {
    const char *name; /* in the directory's bytes; not terminated */
    size_t name_length;
    uint64_t bytes, local; /* size of the contents; offset of the local header in the file */
    bool stored;           /* neither compressed nor encrypted */
} tess_zip_entry;

typedef struct tess_zip {
    const tess_weights *weights;
    unsigned char *directory;
    uint64_t begin, bytes;   /* of the directory in the file */
    tess_zip_entry *entries; /* sorted by name */
    size_t count;
    tess_error *error;
} tess_zip;

/* Reads the directory of the open file. Call tess_zip_free in any case. */
tess_status tess_zip_read(tess_zip *zip, const tess_weights *weights, tess_error *error) TESS_MUST_CHECK;
void tess_zip_free(tess_zip *zip);

/* Returns NULL when there is no such entry. */
const tess_zip_entry *tess_zip_find(const tess_zip *zip, const char *name, size_t length);
/* Finds where a stored entry's bytes begin; all of them lie within the file. */
tess_status tess_zip_contents(const tess_zip *zip, const tess_zip_entry *entry,
                              uint64_t *offset) TESS_MUST_CHECK;

#endif
