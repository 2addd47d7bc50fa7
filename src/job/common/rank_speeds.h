/* rank_speeds.h: the speeds by which ranks divide the rows of one image, if they do. TESSERA_SPEEDS of rank 0 decides: `equal`: they
 * do not; `measure`: also for a short job; or a list of numbers, one for each rank. */
#ifndef TESS_JOB_RANK_SPEEDS_H
#define TESS_JOB_RANK_SPEEDS_H

#include "job/common/engine.h"

typedef struct tess_rank_work {
    const tess_engine_model *model;
    int64_t rows, width; /* of the longest strip, if all are equal */
    int64_t ranks;       /* that have a strip */
    double seconds;      /* of the job on a rank, as planned */
    uint64_t limit;      /* bytes of a rank */
} tess_rank_work;

/* Collective, before memory for the job is allocated. *speeds, of all ranks, is NULL where they are not known: on cards, and where the
 * job is so short that measuring would take more than about 3 % of it. Release it with tess_small_free. */
tess_status tess_rank_speeds(tess_engine *engine, const tess_rank_work *work, double **speeds,
                             tess_error *error) TESS_MUST_CHECK;

/* True where TESSERA_SPEEDS of this rank is a list. */
bool tess_rank_speeds_given(void);

#endif
