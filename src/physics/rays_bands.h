/* rays_bands.h: what ranks send each other of views. A rank has a slab of the volume and owns some views; of each view, a slab needs and
 * makes only the rows of its shadow (physics/rays_shadow.h), its band. Bands are exchanged in rounds, of a few views of every owner, by all
 * ranks with all at once: owners that took turns would leave the links of all others idle. What ranks of one node send to an owner on another
 * is added up by one of them first (physics/rays_nodes.h), and what they get from it comes once.
 *
 * Sums are made in the order of ranks on each node, then in the order of nodes. Buffers are memory of the host. */
#ifndef TESS_PHYSICS_RAYS_BANDS_H
#define TESS_PHYSICS_RAYS_BANDS_H

#include "physics/rays_nodes.h"
#include "physics/rays_shadow.h"

enum { TESS_BANDS_MOST_VIEWS = 8 };

typedef struct tess_bands {
    tess_dist *dist;
    tess_ray_nodes nodes;
    int node, member, members; /* this rank's node, which of its ranks this one is, and how many it has */
    int *served, serving;      /* owners for which this rank is the agent of its node; owned */
    int64_t views, rows, columns;
    int64_t most, rounds;     /* views of an owner in a round */
    size_t bytes[2];          /* of the two buffers that a round needs */
    tess_shadow_rows *inside; /* of each view, of each rank of this node; owned */
    tess_shadow_rows *theirs; /* of each view that this rank owns, of each node; owned */
    tess_dist_exchange *exchange;
    tess_dist_transfer *list; /* room for those of a round; owned */
} tess_bands;

/* Some views of one owner. */
typedef struct tess_bands_portion {
    int64_t first, count;
} tess_bands_portion;

/* Views of an owner in a round: no buffer takes much more than 16 MiB. `widest`: the most rows of a shadow, of all ranks and views. */
int64_t tess_bands_most(int ranks, int64_t rows, int64_t columns, int64_t widest);
/* For `settings->share`. On failure there is nothing to clear. */
tess_status tess_bands_open(const tess_rays_settings *settings, tess_bands *bands,
                            tess_error *error) TESS_MUST_CHECK;
void tess_bands_clear(tess_bands *bands);

/* The first view of a rank; of rank `size`: the number of views. */
int64_t tess_bands_first(const tess_bands *bands, int rank);
tess_bands_portion tess_bands_portion_of(const tess_bands *bands, int owner, int64_t round);

/* Both copy the bands of this rank's slab in some views, and return where those of the next portion are. Put: rows outside of the bands
 * become 0. */
char *tess_bands_take(const tess_bands *bands, tess_bands_portion portion, float *views, char *packed);
char *tess_bands_put(const tess_bands *bands, tess_bands_portion portion, char *packed, float *views);

/* Collective. Bands of this rank's slab in the views of all owners, in the order of owners, are in buffer[0]; this rank's views of that round
 * become the sums of the bands of all ranks. */
tess_status tess_bands_to_owners(tess_bands *bands, int64_t round, char *const buffer[2], float *views,
                                 tess_error *error) TESS_MUST_CHECK;
/* Collective. The way back: from the views of all owners to bands in buffer[0]. */
tess_status tess_bands_from_owners(tess_bands *bands, int64_t round, float *views, char *const buffer[2],
                                   tess_error *error) TESS_MUST_CHECK;
/* Collective. The rows of one view, of `row_bytes` each, from its owner. Rows that this rank's slab does not need become 0 or are right. */
tess_status tess_bands_spread(tess_bands *bands, int owner, int64_t view, size_t row_bytes, char *rows,
                              tess_error *error) TESS_MUST_CHECK;

#endif
