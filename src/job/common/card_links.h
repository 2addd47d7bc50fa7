/* card_links.h: how ranks whose devices have separate memory send rows to each other: by NCCL, or through pinned memory. */
#ifndef TESS_JOB_CARD_LINKS_H
#define TESS_JOB_CARD_LINKS_H

#include "dist/nccl.h"
#include "job/common/engine.h"
#include "net/neighbours.h"

typedef struct tess_card_links {
    bool by_nccl;
    tess_nccl *nccl; /* owned; NULL unless the job runs */
    uint64_t
        bytes; /* that NCCL took of the card; the most of all ranks, when they have shared what they measured */
    char words[160]; /* for the record; "": nothing is exchanged */
} tess_card_links;

/* Collective, before the plan. `connects`: the job will run, and its cards are connected here: what NCCL takes is no longer free when the
 * limit is decided, and if it fails all ranks can still go another way. */
tess_status tess_card_links_open(tess_card_links *links, tess_engine *engine, const tess_common *common,
                                 bool connects, tess_error *error) TESS_MUST_CHECK;
/* Pinned bytes that exchanges of tess_cut_plan's exchange_bytes take on the host. */
size_t tess_card_links_pinned(const tess_card_links *links, size_t exchange_bytes);
/* Makes neighbours that are open exchange what lies in the memory of the device. */
tess_status tess_card_links_join(const tess_card_links *links, tess_device *device, size_t exchange_bytes,
                                 tess_neighbours *neighbours, tess_error *error) TESS_MUST_CHECK;
/* After a network with exchanges, whose work on the device is done, with its status and error: returns the first failure of both. If the
 * cards of other ranks may wait for messages of this one, ends the job. */
tess_status tess_card_links_check(tess_dist *dist, const tess_neighbours *neighbours, tess_status status,
                                  tess_error *error) TESS_MUST_CHECK;
/* Before the engine is closed. Accepts links that were never opened and are all zero. */
void tess_card_links_close(tess_card_links *links);

#endif
