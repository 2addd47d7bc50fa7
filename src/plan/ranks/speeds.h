/* speeds.h: how fast the ranks of a job are beside each other. Cores of one host differ, for instance where others use the same
 * processor, and ranks that exchange rows wait for the slowest. */
#ifndef TESS_PLAN_SPEEDS_H
#define TESS_PLAN_SPEEDS_H

#include "dist/dist.h"
#include "plan/rates.h"

typedef struct tess_speeds_work {
    const tess_bound *bound;
    int64_t rows, width; /* of a strip, at the network's grid */
    int ranks;           /* that take part; the others wait */
    double seconds;      /* for all measuring of a rank, as the rates predict it */
    size_t bytes;        /* most memory of a rank */
} tess_speeds_work;

/* Collective. All ranks compute the convolutions of the network that take most of its time, at the same time, because they share caches
 * and the memory's bandwidth. *speeds has one for each rank: the mean time of all over its own; 1 if it takes no part, or nothing
 * could be measured. Host only. */
tess_status tess_speeds_measure(tess_dist *dist, const tess_rates *rates, const tess_speeds_work *work,
                                double *speeds, tess_error *error) TESS_MUST_CHECK;

#endif
