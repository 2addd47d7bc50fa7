/* neighbours.h: the rows that strips of one image exchange inside a network, between ranks. Rows are sent from and
 * received into the arena itself, so an exchange needs no memory of its own. */
#ifndef TESS_NET_NEIGHBOURS_H
#define TESS_NET_NEIGHBOURS_H

#include "dist/dist.h"
#include "net/plan.h"

typedef struct tess_neighbours {
    int above, below; /* ranks; of a strip at the image's edge one of them is not used */
    tess_dist_exchange *exchange;
    tess_status status; /* of all exchanges so far */
    tess_error error;
} tess_neighbours;

tess_status tess_neighbours_open(tess_neighbours *neighbours, tess_dist *dist, int above, int below,
                                 tess_error *error) TESS_MUST_CHECK;
void tess_neighbours_close(tess_neighbours *neighbours);
/* For a run, with the neighbours as its user. A failure shows in the status: the results are then garbage. */
extern const tess_exchanger tess_neighbours_exchanger;

#endif
