/* pictures.h: small pictures of the files that records name, for the page.
 *
 * Records of `fill`, `detect`, `denoise` and `reconstruct` name their files. Those that still exist, from the current folder
 * or from that of the record, are shown reduced: elevation maps as hillshades with their voids marked, scores and deviations
 * in colours, cubes in false colours. A file that is not there, too large or no image has no picture, and that is no error. */
#ifndef TESS_REPORT_PICTURES_H
#define TESS_REPORT_PICTURES_H

#include "base/memory.h"
#include "report/store.h"

enum { TESS_PICTURES_MOST = 24, TESS_PICTURE_SIDE = 400 };

typedef struct tess_picture {
    int64_t record;        /* its index in the store */
    const char *role;      /* "before", "after", "deviation", "scores", ... */
    const char *shown;     /* how: "hillshade", "colours", "as it is" */
    char *name;            /* owned: the file, as the record names it */
    int64_t height, width; /* of the file */
    unsigned char *png;    /* owned */
    size_t bytes;
} tess_picture;

/* All zero is empty. */
typedef struct tess_pictures {
    tess_picture list[TESS_PICTURES_MOST];
    int count;
    int left_out; /* beyond the most */
} tess_pictures;

/* `near` is the page's name: temporary files are made beside it. */
tess_status tess_pictures_find(tess_pictures *pictures, const tess_store *store, tess_memory *memory,
                               const char *near, tess_stop *stop, tess_error *error) TESS_MUST_CHECK;
void tess_pictures_clear(tess_pictures *pictures);

#endif
