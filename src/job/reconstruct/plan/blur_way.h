/* blur_way.h: how ranks share blurs with an unknown boundary: by the spectrum or by halos, whichever the plan predicts to be
 * faster. TESSERA_BLURS=halo|spectrum decides instead, for measurements and tests. */
#ifndef TESS_JOB_RECONSTRUCT_PLAN_BLUR_WAY_H
#define TESS_JOB_RECONSTRUCT_PLAN_BLUR_WAY_H

#include "job/common/blur_exchange.h"
#include "job/reconstruct/problem/problem.h"

/* Collective: rank 0 decides, so that all blur alike whatever rates they know. `rates`: of the device that blurs. */
tess_status tess_blur_way_choose(const tess_rates *rates, const tess_problem *problem,
                                 const tess_share *share, tess_blur_exchange *exchange,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
