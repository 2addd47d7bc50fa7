/* share.h: ranks that hold parts of one image and compute on it together. Solvers call what looks local (a sum of vectors, an operator)
 * and communicates inside, so a rank that fails cannot return early: the others would wait for it. It keeps the failure and goes
 * on with whatever values it has, and all ranks learn of it where they next add up numbers or agree. */
#ifndef TESS_DIST_SHARE_H
#define TESS_DIST_SHARE_H

#include "dist/dist.h"

typedef struct tess_share {
    tess_dist *dist;
    int64_t *from; /* rank r has rows [from[r], from[r + 1]) of the image, or slices of the volume; owned */
    tess_status status; /* the first failure of this rank that the others do not know of */
    tess_error error;
} tess_share;

/* NULL and a single rank are alone. */
static inline bool tess_share_many(const tess_share *share)
{
    return share && share->dist && share->dist->size > 1;
}

/* This rank's part: alone, all `rows`. */
int64_t tess_share_first(const tess_share *share);
int64_t tess_share_rows(const tess_share *share, int64_t rows);

/* Keeps a failure and returns TESS_OK; alone, returns the status. */
tess_status tess_share_keep(tess_share *share, tess_status status, const tess_error *error) TESS_MUST_CHECK;
/* Collective: as tess_dist_agree, on `mine` and what was kept. */
tess_status tess_share_agree(tess_share *share, tess_status mine, tess_error *error) TESS_MUST_CHECK;
/* Collective: adds the numbers of all ranks in their order, so that all get the same bits; or the least, or the largest. Fails on
 * all ranks if one has kept a failure. */
typedef enum tess_share_how { TESS_SHARE_SUM, TESS_SHARE_LEAST, TESS_SHARE_MOST } tess_share_how;
tess_status tess_share_add(tess_share *share, tess_share_how how, double *value,
                           tess_error *error) TESS_MUST_CHECK;

#endif
