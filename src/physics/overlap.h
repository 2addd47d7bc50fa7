/* overlap.h: a strip of an image with rows of its neighbours. A convolution whose kernel reaches `reach` rows up and down needs so many
 * rows of the image above and below a strip; with them each rank computes its own rows of the result alone. Rows come from as many
 * ranks as hold them, so strips may be lower than the reach. */
#ifndef TESS_PHYSICS_OVERLAP_H
#define TESS_PHYSICS_OVERLAP_H

#include "device/device.h"
#include "dist/share.h"

/* Some rows that one rank sends to another. */
typedef struct tess_overlap_piece {
    int peer;
    bool sends, receives; /* both: this rank's own rows */
    int64_t from, to;     /* the first row in the strip that has it, and in the rows that need it */
    int64_t count;
} tess_overlap_piece;

typedef struct tess_overlap {
    tess_share *share;
    int64_t height, reach; /* of the image; of the kernels */
    bool around;           /* an image goes on at its other edge; otherwise rows outside are zero */
    /* `reach` rows, the strip, `reach` rows, and rows of zeros up to a height that was asked for */
    tess_tensor rows;
    tess_overlap_piece *pieces; /* owned, as are the transfers and the exchange */
    int count;
    tess_dist_transfer *list;
    tess_dist_exchange *exchange;
} tess_overlap;

/* Rows of a strip with those of its neighbours. */
int64_t tess_overlap_height(const tess_share *share, int64_t height, int64_t reach);
/* Describes it; creates nothing. `rows` has at least tess_overlap_height rows. */
void tess_overlap_lay_out(tess_overlap *overlap, tess_share *share, int64_t height, int64_t reach,
                          tess_tensor rows);
/* Close it also if this fails. */
tess_status tess_overlap_open(tess_overlap *overlap, tess_error *error) TESS_MUST_CHECK;
void tess_overlap_close(tess_overlap *overlap);

/* Collective: fills `rows` from the strips. */
void tess_overlap_gather(const tess_overlap *overlap, const void *strip, void *rows);
/* Copies this rank's rows out of `rows`. */
void tess_overlap_own(const tess_overlap *overlap, const void *rows, void *strip);

#endif
