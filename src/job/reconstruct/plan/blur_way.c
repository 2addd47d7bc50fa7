#include "job/reconstruct/plan/blur_way.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "physics/convolve.h"

static void decide(const tess_rates *rates, const tess_problem *p, const tess_share *share,
                   tess_blur_exchange *e)
{
    const tess_dist *dist = share->dist;
    tess_blurs blurs = {.height = tess_problem_divided(p),
                        .width = tess_convolve_side(p->width, p->margin[1]),
                        .channels = p->channels,
                        .count = p->count,
                        .reach = p->margin[0]};
    int per_node = 1;
    for (int r = 0; r < dist->size; r++) {
        blurs.rows = tess_max_i64(blurs.rows, share->from[r + 1] - share->from[r]);
        per_node = dist->places && dist->places[r].locals > per_node ? dist->places[r].locals : per_node;
    }
    const tess_links links = tess_blurs_links(per_node);
    const char *wanted = getenv("TESSERA_BLURS");
    *e = (tess_blur_exchange){.reach = blurs.reach};
    e->way = tess_blurs_choose(&blurs, &links, rates, dist->size, e->costs);
    for (int halo = 0; halo < 2; halo++)
        if (wanted && strcmp(wanted, halo ? "halo" : "spectrum") == 0) {
            e->way = halo ? TESS_BLURS_HALO : TESS_BLURS_SPECTRUM;
            e->because = TESS_BLURS_BY_ENVIRONMENT;
        }
}

tess_status tess_blur_way_choose(const tess_rates *rates, const tess_problem *p, const tess_share *share,
                                 tess_blur_exchange *e, tess_error *error)
{
    decide(rates, p, share, e);
    return tess_dist_broadcast(share->dist, 0, e, sizeof *e, error);
}
