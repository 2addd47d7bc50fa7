/* card_links.h: how ranks whose devices have separate memory send rows to each other: by NCCL, or through pinned memory. */
#ifndef TESS_JOB_CARD_LINKS_H
#define TESS_JOB_CARD_LINKS_H

#include "dist/nccl.h"
#include "job/common/engine.h"

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
/* Before the engine is closed. Accepts links that were never opened and are all zero. */
void tess_card_links_close(tess_card_links *links);

#endif
