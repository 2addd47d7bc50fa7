/* volume.h: the planner of 3-D networks, behind tess_cut_choose. */
#ifndef TESS_PLAN_VOLUME_H
#define TESS_PLAN_VOLUME_H

#include "plan/cut.h"

/* The same as tess_cut_choose, for a 3-D network. */
tess_status tess_cut_choose_volume(const tess_bound *bound, const tess_model_net *model,
                                   const tess_rates *rates, const tess_cut_request *request,
                                   tess_cut_plan *choice, tess_error *error) TESS_MUST_CHECK;

#endif
