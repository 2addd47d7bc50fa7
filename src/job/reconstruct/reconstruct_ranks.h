/* reconstruct_ranks.h: one reconstruction on several ranks. Each has a strip of the image's rows, or a slab of the volume's
 * slices, in all vectors of the solver; see dist/share.h. */
#ifndef TESS_JOB_RECONSTRUCT_RANKS_H
#define TESS_JOB_RECONSTRUCT_RANKS_H

#include "base/json.h"
#include "job/common/prior.h"
#include "job/reconstruct/plan/blur_way.h"
#include "job/reconstruct/plan/plan.h"

/* What is known of one rank. */
typedef struct tess_rank_part {
    int64_t first, count; /* rows, or slices */
    double speed;         /* beside the other ranks; 0: not known */
    uint64_t planned, measured;
    uint64_t planned_host, measured_host; /* besides, on the host, if the network runs on a card */
    uint64_t sent;                        /* in the steps towards the data */
} tess_rank_part;

typedef struct tess_parts {
    tess_share share;
    tess_rank_part *ranks;    /* owned; NULL: alone */
    bool by_speed;            /* slower ranks have fewer rows */
    char reason[320];         /* how they share the image and the operator */
    tess_blur_exchange blurs; /* of a problem with an unknown boundary */
} tess_parts;

/* Refuses what ranks cannot share. The same on all of them. */
tess_status tess_parts_check(const tess_dist *dist, const tess_reconstruct_settings *settings,
                             const tess_problem *problem, tess_error *error) TESS_MUST_CHECK;
/* Collective, when the network is known: divides the image. Does nothing alone. `rates`: of the operator's device. `iterations`: in
 * long jobs, slower ranks have fewer rows. */
tess_status tess_parts_divide(tess_parts *parts, const tess_problem *problem, const tess_prior *prior,
                              const tess_rates *rates, int64_t iterations, tess_error *error) TESS_MUST_CHECK;
/* Collective: after that all ranks have as many rows again, because the longest strip does not fit the memory. */
tess_status tess_parts_divide_equally(tess_parts *parts, const tess_problem *problem, const tess_prior *prior,
                                      tess_error *error) TESS_MUST_CHECK;
void tess_parts_clear(tess_parts *parts);
/* After that ranks blur by the spectrum, because halos do not fit the memory of one of them. */
void tess_parts_avoid_halo(tess_parts *parts, const tess_problem *problem, const tess_prior *prior);
/* Collective: after it the budget has the most of all ranks. */
tess_status tess_parts_share_plan(tess_parts *parts, tess_budget *budget, tess_error *error) TESS_MUST_CHECK;
/* Collective: after it `peak` and `nccl`, bytes of the library, have the most of all ranks. `sent`: bytes that this one sent in the
 * steps towards the data. */
tess_status tess_parts_share_peak(tess_parts *parts, tess_mem_usage *peak, uint64_t sent, uint64_t *nccl,
                                  tess_error *error) TESS_MUST_CHECK;
/* Adds "parts" to the verb's part of the record. Nothing alone. */
void tess_parts_record(const tess_parts *parts, const tess_problem *problem, tess_json **own);

#endif
