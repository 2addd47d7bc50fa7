/* mean_rates.h: the rates of a rank of mean speed, from those of all ranks. */
#ifndef TESS_PLAN_MEAN_RATES_H
#define TESS_PLAN_MEAN_RATES_H

#include "dist/dist.h"
#include "plan/rates.h"

/* Collective. Every class of rank 0 gets the mean of all ranks that have a rate for it, on all ranks, and rank 0 writes the cache, if
 * possible: what one rank measured would depend on which of them it was. */
tess_status tess_mean_rates(tess_rates *rates, tess_dist *dist, tess_error *error) TESS_MUST_CHECK;

#endif
