/* What binds: found by leaving one thing out. */
#include <math.h>

#include "plan/ranks/scaling.h"

tess_scale_setup tess_scale_setup_of(const tess_bound *bound, const tess_net *net, const tess_rates *rates,
                                     const tess_links *links)
{
    tess_scale_setup setup = {.bound = bound, .rates = rates, .links = *links, .avoid = 1};
    for (int axis = 0; axis < TESS_SPATIAL; axis++)
        setup.grid[axis] = tess_net_grid(net, axis);
    return setup;
}

tess_links tess_scale_without_latency(const tess_links *links)
{
    tess_links other = *links;
    other.inside.latency = other.outside.latency = 0;
    return other;
}

tess_links tess_scale_without_limit(const tess_links *links)
{
    tess_links other = *links;
    other.inside.rate = other.inside.rank_rate = other.outside.rate = 1e18;
    return other;
}

tess_scale_losses tess_scale_losses_of(const tess_scale_point *p, const tess_scale_point *base,
                                       const tess_scale_point *quick, const tess_scale_point *wide)
{
    const double lost = p->seconds - base->seconds * base->ranks / p->ranks;
    tess_scale_losses l = {.latency = fmax(0, p->seconds - quick->seconds),
                           .bandwidth = fmax(0, p->seconds - wide->seconds),
                           .computing = fmax(0, lost - tess_scale_communication(p))};
    l.binds = lost < 0.1 * p->seconds                       ? "computing"
              : p->used < p->ranks                          ? "idle ranks"
              : l.computing >= fmax(l.latency, l.bandwidth) ? "small or repeated work of each rank"
              : l.latency > l.bandwidth                     ? "latency"
                                                            : "bandwidth";
    return l;
}
