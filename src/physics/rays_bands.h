/* rays_bands.h: what ranks send each other of views. A rank has a slab of the volume and owns some views; of each view, a slab needs and
 * makes only the rows of its shadow (physics/rays_shadow.h), its band. Bands are exchanged in rounds, of a few views of every owner, by all
 * ranks with all at once: owners that took turns would leave the links of all others idle.
 *
 * Two buffers hold the bands of a round, one after another: `mine`, of this rank's slab in the views of every owner in the order of owners,
 * and `theirs`, of every rank's slab in the views that this rank owns in the order of ranks. They are memory of the host. */
#ifndef TESS_PHYSICS_RAYS_BANDS_H
#define TESS_PHYSICS_RAYS_BANDS_H

#include "physics/rays_shadow.h"

enum { TESS_BANDS_MOST_VIEWS = 8 };

typedef struct tess_bands {
    tess_dist *dist;
    int64_t views, rows, columns;
    int64_t most, rounds;            /* views of an owner in a round */
    size_t mine_bytes, theirs_bytes; /* of the buffers */
    tess_shadow_rows *mine;          /* of each view; owned */
    tess_shadow_rows *theirs;        /* of each view that this rank owns, of each rank; owned */
    tess_dist_exchange *exchange;
    tess_dist_transfer *list; /* one for each rank */
} tess_bands;

/* Some views of one owner. */
typedef struct tess_bands_portion {
    int64_t first, count;
} tess_bands_portion;

/* For `settings->share`. On failure there is nothing to clear. */
tess_status tess_bands_open(const tess_rays_settings *settings, tess_bands *bands,
                            tess_error *error) TESS_MUST_CHECK;
void tess_bands_clear(tess_bands *bands);

/* The first view of a rank; of rank `size`: the number of views. */
int64_t tess_bands_first(const tess_bands *bands, int rank);
tess_bands_portion tess_bands_portion_of(const tess_bands *bands, int owner, int64_t round);

/* The next four copy the bands of some views, from or to whole views, and return where those of the next ones are. */
char *tess_bands_take_mine(const tess_bands *bands, tess_bands_portion portion, const float *views,
                           char *mine);
/* Rows outside of the bands become 0. */
const char *tess_bands_put_mine(const tess_bands *bands, tess_bands_portion portion, const char *mine,
                                float *views);
char *tess_bands_take_theirs(const tess_bands *bands, tess_bands_portion portion, int rank,
                             const float *views, char *theirs);
/* Adds to the views. */
const char *tess_bands_add_theirs(const tess_bands *bands, tess_bands_portion portion, int rank,
                                  const char *theirs, float *views);

/* Collective. The bands of a round, to the owners of their views or back from them. */
tess_status tess_bands_to_owners(tess_bands *bands, int64_t round, char *mine, char *theirs,
                                 tess_error *error) TESS_MUST_CHECK;
tess_status tess_bands_from_owners(tess_bands *bands, int64_t round, char *mine, char *theirs,
                                   tess_error *error) TESS_MUST_CHECK;
/* Collective. The rows of one view, of `row_bytes` each, from its owner. Other rows become 0, except on the owner. */
tess_status tess_bands_spread(tess_bands *bands, int owner, int64_t view, size_t row_bytes, char *rows,
                              tess_error *error) TESS_MUST_CHECK;

#endif
