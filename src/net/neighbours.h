/* neighbours.h: what parts of one image exchange inside a network, between ranks. Rows of strips are sent from and received into
 * the arena itself; what blocks exchange goes through a compact buffer of the plan (net/exchange.h). An exchange needs no memory of its
 * own, unless the device has separate memory: then it passes through pinned memory (net/relay.h),
 * or goes from card to card by NCCL (dist/nccl.h). */
#ifndef TESS_NET_NEIGHBOURS_H
#define TESS_NET_NEIGHBOURS_H

#include "dist/nccl.h"
#include "net/plan.h"
#include "net/relay.h"

typedef struct tess_neighbours {
    int rank, columns; /* ranks are numbered row by row; strips are one column */
    tess_dist_exchange *exchange;
    tess_relay relay;   /* if the device has separate memory, and there is no nccl */
    tess_nccl *nccl;    /* the caller's; set it after opening to exchange between cards directly */
    bool lost;          /* the other ranks cannot be reached: no further exchanges */
    tess_status status; /* of all exchanges so far */
    tess_error error;
} tess_neighbours;

/* `columns`: of the grid of blocks into which the image is divided; 1: strips, or slabs. */
tess_status tess_neighbours_open(tess_neighbours *neighbours, tess_dist *dist, int columns,
                                 tess_error *error) TESS_MUST_CHECK;
/* Makes exchanges pass through pinned memory of this size: see tess_relay_open. */
tess_status tess_neighbours_relay(tess_neighbours *neighbours, tess_device *device, size_t bytes,
                                  tess_error *error) TESS_MUST_CHECK;
/* Work on the device that waits for an exchange must be done. Accepts neighbours that were never opened and are all zero. */
void tess_neighbours_close(tess_neighbours *neighbours);
/* For a run, with the neighbours as its user. A failure shows in the status: the results are then garbage. */
extern const tess_exchanger tess_neighbours_exchanger;

#endif
