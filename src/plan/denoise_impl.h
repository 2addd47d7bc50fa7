/* denoise_impl.h: a choice in the making, between denoise.c (which cut) and denoise_bytes.c (what a cut takes). */
#ifndef TESS_PLAN_DENOISE_IMPL_H
#define TESS_PLAN_DENOISE_IMPL_H

#include "plan/denoise.h"

/* Everything that choosing needs to know. */
typedef struct chooser {
    const tess_bound *bound;
    const tess_rates *rates;
    const tess_denoise_wish *wish;
    int64_t grid, alignment, halo, padded_h, padded_w;
    double bytes_per_pixel; /* of the arena: the line */
    double seconds_per_run, seconds_per_pixel;
    bool calibrated;
    const struct axis_cost *row_costs, *col_costs;
    int row_count, col_count;
} chooser;

/* All bytes of a cut, exactly, and its seconds. */
tess_status tess_denoise_measure(const chooser *c, tess_denoise_choice *choice,
                                 tess_error *error) TESS_MUST_CHECK;

#endif
